package scheduletime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// Numbers are what a bound of every choice rests on: the least that each item of the chain takes.
// It is the least of all schedules of the question and of all GPUs. Times are seconds of a
// micro-batch.
type Numbers struct {
	Batches int
	// Line: one stage on each GPU, in order. Loops: two, which go round the GPUs. Vee: two, in the
	// form of a V. These are the places of the chunks that choices may have.
	Line, Loops, Vee bool
	// Joint: no schedule splits a backward, so the gradients of earlier items follow a GPU's last pass.
	Joint bool
	// Forward and Input are on the way to the end of the chain and back. Work is all passes without
	// recomputation.
	Forward, Input, Work []float64
	// Saved are the bytes of a micro-batch that an item keeps from forward to backward, Made those
	// with recomputation. Static are bytes that are there throughout, and Scratch is there once, the
	// largest of a GPU's items.
	Saved, Made, Static, Scratch []float64
	// Freed is the most that recomputing an item frees, Extra the least that it takes.
	Freed, Extra float64
	// Free is the memory of each GPU.
	Free []float64
	// Update is the time after the passes of all GPUs.
	Update float64
}

// TheBound is the argument for a bound.
const TheBound = "work, ways and memory of each GPU, for all cuts"

// Numbers returns the numbers of a question, from the tables of its schedules with no block
// recomputed and with all.
func (question *Question) Numbers() (*Numbers, error) {
	count := question.Items.Count()
	out := &Numbers{Joint: !question.Own, Extra: math.Inf(1), Update: math.Inf(1)}
	for _, list := range []*[]float64{&out.Forward, &out.Input, &out.Work, &out.Saved, &out.Made, &out.Static, &out.Scratch} {
		*list = slices.Repeat([]float64{math.Inf(1)}, count)
	}
	out.Free = slices.Repeat([]float64{0}, len(question.Topology.Devices))
	several := question.Own && len(out.Free) > 1 && 2*len(out.Free) <= count
	out.Line, out.Loops, out.Vee = question.Own, several, several
	found := ErrNone
	for _, kind := range question.Kinds {
		none, err := question.Table(kind, make([]bool, len(question.Blocks)))
		if err != nil {
			found = err
			continue
		}
		all, err := question.Table(kind, slices.Repeat([]bool{true}, len(question.Blocks)))
		if err != nil {
			return nil, err
		}
		out.Line, out.Loops, out.Vee = out.Line || !kind.Chunked(), out.Loops || kind.Loops(), out.Vee || kind.Vee()
		out.Joint = out.Joint && !kind.Split()
		out.Batches = int(max(1, none.Workload.MicroBatches))
		out.add(question, none, all)
		found = nil
	}
	return out, found
}

// add lowers the numbers to those of a schedule's tables.
func (numbers *Numbers) add(question *Question, none, all *costmodel.Table) {
	lower := func(list []float64, item int, to float64) { list[item] = min(list[item], to) }
	updates := 0.
	for item := range numbers.Work {
		var saved, made, static, scratch float64
		for _, unit := range question.Items.Units(item) {
			one, other := &none.Units[unit], &all.Units[unit]
			saved, made = saved+float64(unitBytes(one).least()), made+float64(unitBytes(other).least())
			static += float64(one.Regions.Weights + one.Regions.Master + one.Regions.State)
			if numbers.Batches > 1 { // of one, gradients take the place of what is saved
				static += float64(one.Regions.Grads)
			}
			scratch = max(scratch, float64(min(one.Regions.Scratch(false), other.Regions.Scratch(false))))
			numbers.Freed = max(numbers.Freed, float64(unitBytes(one).least()-unitBytes(other).least()))
		}
		lower(numbers.Saved, item, saved)
		lower(numbers.Made, item, made)
		lower(numbers.Static, item, static)
		lower(numbers.Scratch, item, scratch)
		least := math.Inf(1)
		for device := range question.Topology.Devices {
			var plain seconds
			update := 0.
			for _, unit := range question.Items.Units(item) {
				update += steptime.Unit(none, question.Topology, device, unit).Update
				took, again := unitTimes(none, question.Topology, device, unit), unitTimes(all, question.Topology, device, unit)
				plain.add(took)
				if unitBytes(&all.Units[unit]).least() < unitBytes(&none.Units[unit]).least() {
					numbers.Extra = min(numbers.Extra, max(0, again.input+again.weight-took.input-took.weight))
				}
			}
			lower(numbers.Forward, item, plain.forward)
			lower(numbers.Input, item, plain.input)
			lower(numbers.Work, item, plain.forward+plain.input+plain.weight)
			least = min(least, update)
		}
		updates += least
	}
	if none.Workload.Runtime != costmodel.Devmap {
		updates = 0 // a GPU updates after its own passes, when others may still run theirs
	}
	numbers.Update = min(numbers.Update, updates/float64(len(numbers.Free)))
	for gpu := range numbers.Free {
		device := &question.Topology.Devices[gpu]
		free := math.Inf(1)
		if costmodel.StageRulesOf(none.Workload.Runtime).Arena {
			free = float64(device.Budget() - none.Overhead(gpu, device))
		}
		numbers.Free[gpu] = max(numbers.Free[gpu], free)
	}
}

// Bound returns a lower bound of the step of every choice, in seconds, at most below. It is the
// longest time found in which no cut has room on every GPU ([sums.feasible]).
func (numbers *Numbers) Bound(below float64) float64 {
	count := len(numbers.Work)
	cut := &cutter{sums: numbers.sums(), seen: make([]bool, (len(numbers.Free)+1)*(count+1)*(count+1))}
	low, high := 0., below-numbers.Update
	for _, work := range numbers.Work {
		low += float64(numbers.Batches) * work / float64(len(numbers.Free)) * (1 - 1e-9)
	}
	for range 60 {
		if !math.IsInf(high, 1) || cut.possible(low) {
			break
		}
		low *= 2
	}
	if math.IsInf(high, 1) {
		low, high = low/2, low
	}
	const steps = 14
	for range steps {
		if middle := (low + high) / 2; cut.possible(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return (low + numbers.Update) * (1 - 1e-9)
}

// cutter tries all cuts, GPU by GPU. Each takes a run of items from where the last one's first run
// ends. Its second run ends where the last one's began in a V, and begins where that ended in a
// loop. The first GPU's second run ends in a V, or begins in a loop, at turn.
type cutter struct {
	*sums
	place
	turn int
	seen []bool // states from which there is no way on
}

// possible reports that some cut of some place has room on every GPU for this length.
func (cut *cutter) possible(length float64) bool {
	count := len(cut.Work)
	cut.length = length
	reaches := func(at place, turn int) bool {
		clear(cut.seen)
		cut.place, cut.turn = at, turn
		return cut.reaches(0, 0, turn)
	}
	if cut.Line && reaches(place{}, count) || cut.Vee && reaches(place{vee: true}, count) {
		return true
	}
	for turn := 1; cut.Loops && turn < count; turn++ {
		if reaches(place{loops: true}, turn) {
			return true
		}
	}
	return false
}

// reaches reports that the GPUs from this one on have room for the items that are left: those from
// first on, and up to second or from it on.
func (cut *cutter) reaches(gpu, first, second int) bool {
	count, gpus := len(cut.Work), len(cut.Free)
	state := (gpu*(count+1)+first)*(count+1) + second
	if cut.seen[state] {
		return false
	}
	cut.seen[state] = true
	left := cut.left(first, second)
	if gpu == gpus {
		return left[0].First == left[0].End && left[1].First == left[1].End
	}
	if cut.of(cut.work, left) > float64(gpus-gpu)*(cut.length-cut.head[first])*(1+1e-12) {
		return false
	}
	for end := first + 1; end <= left[0].End; end++ {
		runs := [2]costmodel.Interval{{First: first, End: end}}
		if cut.over(runs) {
			return false
		}
		if cut.place == (place{}) {
			if cut.feasible(gpu, runs) && cut.reaches(gpu+1, end, second) {
				return true
			}
			continue
		}
		if cut.seconds(gpu, runs, second) {
			return true
		}
	}
	return false
}

// seconds is reaches with the GPU's first run, for all second ones.
func (cut *cutter) seconds(gpu int, runs [2]costmodel.Interval, second int) bool {
	for size := 1; ; size++ {
		next := second + size
		runs[1] = costmodel.Interval{First: second, End: next}
		if cut.vee {
			next = second - size
			runs[1] = costmodel.Interval{First: next, End: second}
		}
		if next > len(cut.Work) || cut.vee && next < runs[0].End || cut.over(runs) {
			return false
		}
		if cut.feasible(gpu, runs) && cut.reaches(gpu+1, runs[0].End, next) {
			return true
		}
	}
}

// left returns the items that no GPU has yet.
func (cut *cutter) left(first, second int) [2]costmodel.Interval {
	count := len(cut.Work)
	out := [2]costmodel.Interval{{First: first, End: count}}
	switch {
	case cut.vee:
		out[0].End = second
	case cut.loops:
		out[0].End, out[1] = cut.turn, costmodel.Interval{First: second, End: count}
	}
	return out
}
