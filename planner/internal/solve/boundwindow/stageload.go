package boundwindow

import (
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// stageLoads tell what a stage has to do at least, with what is decided to be
// there and one item more. A wire of these that cannot lie within the stage is
// paid. Another is paid unless a certain member of it, that stands for all, comes
// too, with its time and its size: those that pay off best come, parts of them
// too, until the stage is full (Dantzig's bound of the knapsack problem,
// Operations Research 5, 1957).
type stageLoads struct {
	*form
	within     *windows
	time, size []float64
	// early and late are the stages where all of a wire's members may be, decided
	// those, as bits, where one of them is sure to be: of the first manyStages.
	early, late []int
	decided     []uint64
	// may are, for each stage, the members that save what is decided there a
	// transfer.
	may     [][]saving
	scratch []saving
}

// saving is what a stage need not pay where an item is there too.
type saving struct {
	item int32
	cost float64
}

// manyStages are not looked at beyond; what can come is counted by stage.
const manyStages = 64

// newStageLoads takes the times and sizes of what is decided for each stage, with
// the transfers that are paid however the rest is.
func (form *form) newStageLoads(within *windows, time, size []float64) *stageLoads {
	out := &stageLoads{
		form: form, within: within, time: time, size: size, may: make([][]saving, form.stages),
		early: make([]int, len(form.wires)), late: make([]int, len(form.wires)), decided: make([]uint64, len(form.wires)),
	}
	for wire := range form.wires {
		late := form.stages
		for _, item := range form.wires[wire].Members {
			first, last := within.first[item], within.last[item]
			out.early[wire], late = max(out.early[wire], first), min(late, last)
			if first == last && first < manyStages {
				out.decided[wire] |= 1 << first
			}
		}
		out.late[wire] = late
		for stages := out.decided[wire]; stages != 0; stages &= stages - 1 {
			if stage := bits.TrailingZeros64(stages); out.early[wire] <= stage && stage <= late {
				out.may[stage] = out.stands(out.may[stage], wire, -1)
			}
		}
	}
	return out
}

// stands adds the member that stands for a wire: the largest that is not decided.
func (loads *stageLoads) stands(may []saving, wire int, besides int32) []saving {
	largest := int32(-1)
	for _, item := range loads.wires[wire].Members {
		if item != besides && loads.within.first[item] < loads.within.last[item] && (largest < 0 || loads.form.size[item] > loads.form.size[largest]) {
			largest = item
		}
	}
	if largest < 0 {
		return may
	}
	for i := range may {
		if may[i].item == largest {
			may[i].cost += loads.wires[wire].Cost
			return may
		}
	}
	return append(may, saving{largest, loads.wires[wire].Cost})
}

// least is the load that a stage has at least, with one item more; −1: without.
func (loads *stageLoads) least(stage int, item int32) float64 {
	if item < 0 {
		return loads.filledUp(stage, 0, 0, append(loads.scratch[:0], loads.may[stage]...))
	}
	if stage >= manyStages {
		return loads.time[stage] + loads.form.time[item]
	}
	paid := loads.form.time[item]
	may := loads.scratch[:0]
	for _, one := range loads.may[stage] {
		if one.item != item {
			may = append(may, one)
		}
	}
	for _, wire := range loads.wiresOf[item] {
		switch {
		case loads.decided[wire]>>stage&1 != 0:
			// It is counted with what is decided there.
		case stage < loads.early[wire] || loads.late[wire] < stage:
			paid += loads.wires[wire].Cost
		default:
			may = loads.stands(may, int(wire), item)
		}
	}
	return loads.filledUp(stage, paid, loads.form.size[item], may)
}

// filledUp adds what a stage pays beyond what it is told.
func (loads *stageLoads) filledUp(stage int, time, size float64, may []saving) float64 {
	loads.scratch = may
	time += loads.time[stage]
	for _, one := range may {
		time += one.cost
	}
	slices.SortFunc(may, func(a, b saving) int {
		// The gain for each byte, without a division by no bytes.
		left, right := loads.gain(a)*loads.form.size[b.item], loads.gain(b)*loads.form.size[a.item]
		switch {
		case left > right:
			return -1
		case left < right:
			return 1
		}
		return 0
	})
	room := loads.room*(1+graph.Rounding) - loads.size[stage] - size
	for _, one := range may {
		gain, bytes := loads.gain(one), loads.form.size[one.item]
		switch {
		case gain <= 0:
		case bytes <= room:
			room -= bytes
			time -= gain
		case room > 0:
			time -= gain * room / bytes
			room = 0
		default:
		}
	}
	return time
}

func (loads *stageLoads) gain(of saving) float64 { return of.cost - loads.form.time[of.item] }

// force says that items which a stage cannot do without are there.
func (loads *stageLoads) force(stage int, limit float64) (changed bool) {
	for _, without := range loads.may[stage] {
		at := &without
		first, last := &loads.within.first[at.item], &loads.within.last[at.item]
		if loads.gain(*at) <= 0 || *first == *last {
			continue
		}
		may := loads.scratch[:0]
		for _, one := range loads.may[stage] {
			if one.item != at.item {
				may = append(may, one)
			}
		}
		if loads.filledUp(stage, at.cost, 0, may) > limit {
			*first, *last = stage, stage
			changed = true
		}
	}
	return changed
}
