package anywhere

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// alikeWithin is how far the bytes of units may be apart that the relaxation
// takes for one kind.
const alikeWithin = 0.1

// Relaxed is the problem in which neighbours in time that differ little are
// all counted as the least of them in every figure (layers with and without a
// sliding window, in turn). No device needs more than before, so that a bound
// of it is one of the problem; it has few kinds, and an exact search soon
// ends. Nil where no units are alike.
func (problem *Problem) Relaxed() *Problem {
	into := &Problem{In: problem.In, Items: problem.Items, ItemOf: problem.ItemOf, Devices: problem.Devices}
	kindOf := make([]int, len(problem.Kinds))
	for kind := range kindOf {
		kindOf[kind] = -1
	}
	for at := 0; at < len(problem.Positions); {
		end := at + 1
		if problem.loose(at) {
			for end < len(problem.Positions) && problem.loose(end) && problem.near(at, end) {
				end++
			}
		}
		problem.join(into, at, end, kindOf)
		at = end
	}
	if len(into.Kinds) == len(problem.Kinds) {
		return nil
	}
	return into
}

// loose reports that a position's units are items by themselves and not pinned.
func (problem *Problem) loose(at int) bool {
	kind := &problem.Kinds[problem.Positions[at].Kind]
	return kind.Pin < 0 && len(kind.Positions) == 1 && len(problem.Items[kind.Items[0]].Units) == 1
}

// near reports that the positions from first up to at hold about the same bytes.
func (problem *Problem) near(first, at int) bool {
	least, most := problem.Positions[at].Held[1].Static, problem.Positions[at].Held[1].Static
	for i := first; i < at; i++ {
		static := problem.Positions[i].Held[1].Static
		least, most = min(least, static), max(most, static)
	}
	return float64(most-least) <= alikeWithin*float64(most)
}

// join adds the positions [at, end) to the relaxed problem as one.
func (problem *Problem) join(into *Problem, at, end int, kindOf []int) {
	old := problem.Positions[at].Kind
	kind := kindOf[old]
	if kind < 0 {
		kind = len(into.Kinds)
		kindOf[old] = kind
		into.Kinds = append(into.Kinds, Kind{Items: slices.Clone(problem.Kinds[old].Items), Pin: problem.Kinds[old].Pin})
	}
	run := problem.Positions[at].Held[1]
	for i := at + 1; i < end; i++ {
		run = run.Least(problem.Positions[i].Held[1])
		into.Kinds[kind].Items = append(into.Kinds[kind].Items, problem.Kinds[problem.Positions[i].Kind].Items...)
	}
	runs := []timeline.Summary{{}}
	for range into.Kinds[kind].Items {
		runs = append(runs, runs[len(runs)-1].Join(run))
	}
	into.Kinds[kind].Positions = append(into.Kinds[kind].Positions, len(into.Positions))
	into.Positions = append(into.Positions, Position{Kind: kind, Held: runs})
}
