package latency

import (
	"math"
	"math/rand/v2"
	"slices"
)

// search is an assignment that is changed, with its own evaluator.
type search struct {
	*instance

	eval   *evaluator
	random *rand.Rand
	slot   []int32   // of units
	held   []float64 // of devices
	count  []int     // units in a call
	undo   []change
	marks  []bool  // of units, for reach
	chosen []int32 // by the move
}

type change struct{ unit, before int32 }

func newSearch(in *instance, seed uint64) *search {
	search := &search{
		instance: in, eval: newEvaluator(in), random: rand.New(rand.NewPCG(seed, 1)),
		slot: make([]int32, len(in.nodes)), held: make([]float64, len(in.kinds)), count: make([]int, in.slots), marks: make([]bool, len(in.nodes)),
	}
	search.clear()
	return search
}

// clear takes every unit from its place.
func (search *search) clear() {
	for unit := range search.slot {
		search.slot[unit] = unplaced
	}
	clear(search.held)
	clear(search.count)
}

// load takes another's places.
func (search *search) load(slot []int32) {
	search.clear()
	for unit, own := range slot {
		search.put(int32(unit), own)
	}
}

func (search *search) put(unit, slot int32) {
	if before := search.slot[unit]; before >= 0 {
		search.held[int(before)/search.calls] -= search.size[unit]
		search.count[before]--
		if search.count[before] == 0 && search.calls == 1 {
			search.held[before] = 0 // sums of fractions do not drift for good
		}
	}
	search.slot[unit] = slot
	if slot >= 0 {
		search.held[int(slot)/search.calls] += search.size[unit]
		search.count[slot]++
	}
}

// may says whether a unit can go there, beside what is there.
func (search *search) may(unit, slot int32) bool {
	if slot < 0 {
		return search.onCPU(unit)
	}
	device := int(slot) / search.calls
	held := search.held[device]
	if before := search.slot[unit]; before >= 0 && int(before)/search.calls == device {
		held -= search.size[unit]
	}
	return search.fits(device, unit, held)
}

// move changes places so that the change can be taken back; what it breaks is
// looked at when all of it is made.
func (search *search) move(unit, slot int32) {
	search.undo = append(search.undo, change{unit, search.slot[unit]})
	search.put(unit, slot)
}

// keepsRules says whether the changes since the last settled one keep the
// rules of memory and kinds.
func (search *search) keepsRules() bool {
	for _, one := range search.undo {
		slot := search.slot[one.unit]
		if slot < 0 {
			if !search.onCPU(one.unit) {
				return false
			}
			continue
		}
		kind := search.kinds[int(slot)/search.calls]
		if search.stays[one.unit] || math.IsInf(search.time[kind][one.unit], 1) || search.held[int(slot)/search.calls] > search.problem.Kinds[kind].Room() {
			return false
		}
	}
	return true
}

func (search *search) takeBack() {
	for _, one := range slices.Backward(search.undo) {
		search.put(one.unit, one.before)
	}
	search.undo = search.undo[:0]
}
