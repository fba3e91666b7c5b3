package assignment

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// findPositions finds the kinds and their places in time.
func (problem *Problem) findPositions() {
	kindOf := make([]int, len(problem.Items))
	for i := range kindOf {
		kindOf[i] = -1
	}
	last := -1 // the kind of the last position, if an item can join it
	for unit := range problem.ItemOf {
		i := problem.ItemOf[unit]
		run := timeline.Of(&problem.In.Costs.Units[unit])
		it := &problem.Items[i]
		if run == (timeline.Summary{}) && (len(it.Units) > 1 || it.Device < 0) {
			if len(it.Units) == 1 {
				problem.weightless = append(problem.weightless, i)
			}
			continue // it adds nothing to a device's run
		}
		single := len(it.Units) == 1 && it.Device < 0
		if single && last >= 0 && problem.Positions[len(problem.Positions)-1].Summaries[1] == run {
			problem.extend(last, i)
			continue
		}
		kind := kindOf[i]
		if kind < 0 {
			kind = len(problem.Kinds)
			kindOf[i] = kind
			problem.Kinds = append(problem.Kinds, Kind{Items: []int{i}, Pin: it.Device})
		}
		problem.Kinds[kind].Positions = append(problem.Kinds[kind].Positions, len(problem.Positions))
		problem.Positions = append(problem.Positions, Position{Kinds: []int{kind}, Summaries: []timeline.Summary{{}, run}})
		if last = -1; single {
			last = kind
		}
	}
	problem.keepHollow(kindOf)
}

// extend adds an item to the kind of the last position.
func (problem *Problem) extend(kind, i int) {
	problem.Kinds[kind].Items = append(problem.Kinds[kind].Items, i)
	at := &problem.Positions[len(problem.Positions)-1]
	at.Summaries = append(at.Summaries, at.Summaries[len(at.Summaries)-1].Join(at.Summaries[1]))
}

// keepHollow adds items of several units without memory to the weightless items. Pinned items keep
// their pin.
func (problem *Problem) keepHollow(kindOf []int) {
	for i := range problem.Items {
		if kindOf[i] < 0 && len(problem.Items[i].Units) > 1 {
			problem.weightless = append(problem.weightless, i)
		}
	}
}
