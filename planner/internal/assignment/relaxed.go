package assignment

import (
	"math"
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
// ends. Nil if no two units are close enough.
func (problem *Problem) Relaxed() *Problem {
	relax := relaxation{
		from: problem, kindOf: slices.Repeat([]int{-1}, len(problem.Kinds)),
		into: &Problem{In: problem.In, Items: problem.Items, ItemOf: problem.ItemOf, Devices: problem.Devices},
	}
	for at := 0; at < len(problem.Positions); {
		end := at + 1
		if relax.loose(at) {
			for end < len(problem.Positions) && relax.loose(end) && relax.near(at, end) {
				end++
			}
		}
		relax.join(at, end)
		at = end
	}
	if len(relax.into.Kinds) == len(problem.Kinds) {
		return nil
	}
	return relax.into
}

// relaxation makes a relaxed problem out of another.
type relaxation struct {
	from, into *Problem
	kindOf     []int // the kind in into of each kind of from, −1 if none yet
}

// loose reports that a position's units are items of their own and not pinned.
func (relax *relaxation) loose(at int) bool {
	kind := &relax.from.Kinds[relax.from.Positions[at].Kind]
	return kind.Pin < 0 && len(kind.Positions) == 1 && len(relax.from.Items[kind.Items[0]].Units) == 1
}

// near reports that the positions from first up to at hold about the same bytes.
func (relax *relaxation) near(first, at int) bool {
	least, most := int64(math.MaxInt64), int64(0)
	for i := first; i <= at; i++ {
		static := relax.from.Positions[i].Summaries[1].Static
		least, most = min(least, static), max(most, static)
	}
	return float64(most-least) <= alikeWithin*float64(most)
}

// join adds the positions [at, end) to the relaxed problem as one.
func (relax *relaxation) join(at, end int) {
	from, into := relax.from, relax.into
	old := from.Positions[at].Kind
	kind := relax.kindOf[old]
	if kind < 0 {
		kind = len(into.Kinds)
		relax.kindOf[old] = kind
		into.Kinds = append(into.Kinds, Kind{Items: slices.Clone(from.Kinds[old].Items), Pin: from.Kinds[old].Pin})
	}
	run := from.Positions[at].Summaries[1]
	for i := at + 1; i < end; i++ {
		run = run.Least(from.Positions[i].Summaries[1])
		into.Kinds[kind].Items = append(into.Kinds[kind].Items, from.Kinds[from.Positions[i].Kind].Items...)
	}
	runs := []timeline.Summary{{}}
	for range into.Kinds[kind].Items {
		runs = append(runs, runs[len(runs)-1].Join(run))
	}
	into.Kinds[kind].Positions = append(into.Kinds[kind].Positions, len(into.Positions))
	into.Positions = append(into.Positions, Position{Kind: kind, Summaries: runs})
}
