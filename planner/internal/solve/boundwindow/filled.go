package boundwindow

import "github.com/devmap-dev/devmap/planner/internal/solve/graph"

// filled narrows the windows by what is decided: a stage has the items that can
// be nowhere else, and pays the wires that lead from these to items that cannot
// be there; what does not fit beside them goes elsewhere. It is not ok where a
// stage has too much.
func (form *form) filled(within *windows, limit float64) (changed, ok bool) {
	limit *= 1 + graph.Rounding
	time, size := make([]float64, form.stages), make([]float64, form.stages)
	for item, first := range within.first {
		if first == within.last[item] {
			time[first] += form.time[item]
			size[first] += form.size[item]
		}
	}
	form.paid(within, time)
	loads := form.newStageLoads(within, time, size)
	for stage := range time {
		if loads.least(stage, -1) > limit || size[stage] > form.room*(1+graph.Rounding) {
			return false, false
		}
		changed = loads.force(stage, limit) || changed
	}
	if changed {
		return true, true // what is decided is counted anew first
	}
	over := func(item, stage int) bool {
		return size[stage]+form.size[item] > form.room*(1+graph.Rounding) || loads.least(stage, int32(item)) > limit
	}
	for item := range within.first {
		first, last := &within.first[item], &within.last[item]
		for *first < *last && over(item, *first) {
			*first++
			changed = true
		}
		for *first < *last && over(item, *last) {
			*last--
			changed = true
		}
	}
	return changed, true
}

// settle narrows the windows by the cones and by what is decided, in turn; the
// cones are last, so that what comes after an item has no earlier window. It is
// false where no placement is left.
func (form *form) settle(within *windows, limit float64) bool {
	for range settling {
		if !form.narrow(within, limit) {
			return false
		}
		crowded, ok := form.crowded(within, limit)
		if !ok {
			return false
		}
		switch changed, ok := form.filled(within, limit); {
		case !ok:
			return false
		case !changed && !crowded:
			return true
		}
	}
	return form.narrow(within, limit)
}

// settling bounds the turns.
const settling = 4

// paid adds the wires that a stage pays however the rest is.
func (form *form) paid(within *windows, time []float64) {
	for _, wire := range form.wires {
		for i, item := range wire.Members {
			stage := within.first[item]
			if stage != within.last[item] || counted(within, wire.Members[:i], stage) {
				continue
			}
			for _, other := range wire.Members {
				if within.first[other] > stage || within.last[other] < stage {
					time[stage] += wire.Cost
					break
				}
			}
		}
	}
}

// counted: one of the items is decided to be at the stage.
func counted(within *windows, items []int32, stage int) bool {
	for _, item := range items {
		if within.first[item] == stage && within.last[item] == stage {
			return true
		}
	}
	return false
}

// load is the largest of a placement.
func (form *form) load(stage []int) float64 {
	load := make([]float64, form.stages)
	for item, at := range stage {
		load[at] += form.time[item]
	}
	form.paid(&windows{stage, stage}, load)
	largest := 0.0
	for _, of := range load {
		largest = max(largest, of)
	}
	return largest
}
