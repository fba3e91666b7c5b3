package assignment

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// maxTable is the most summaries of a place in a relaxed problem: five kinds with six units each,
// or two with 180.
const maxTable = 1 << 15

// Relaxed returns the problem in which units of few alternating kinds may run in any order, such as
// layers with and without a sliding window. A device's need then depends on the number of units of
// each kind. It is the least over all orders, so bounds of the relaxed problem hold for this one.
// Few kinds make an exact search fast. With coarse, units that differ little are one kind, too.
// Relaxed returns nil if no kinds alternate.
func (problem *Problem) Relaxed(coarse bool) *Problem {
	relax := relaxation{
		from: problem, coarse: coarse, kindOf: slices.Repeat([]int{-1}, len(problem.Kinds)),
		into: &Problem{In: problem.In, Items: problem.Items, ItemOf: problem.ItemOf, Devices: problem.Devices},
	}
	for at := 0; at < len(problem.Positions); {
		end := max(at+1, relax.end(at))
		relax.join(at, end)
		at = end
	}
	if len(relax.into.Kinds) == len(problem.Kinds) {
		return nil
	}
	relax.moments()
	return relax.into
}

// relaxation builds a relaxed problem from another one.
type relaxation struct {
	from, into *Problem
	coarse     bool
	kindOf     []int // kind in into for each kind of from; −1: none yet
}

// loose reports that each unit of a position is an item on its own and not pinned.
func (relax *relaxation) loose(at int) bool {
	kind := &relax.from.Kinds[relax.from.Positions[at].Kinds[0]]
	return kind.Pin < 0 && len(kind.Positions) == 1 && len(relax.from.Items[kind.Items[0]].Units) == 1
}

// alikeWithin is the largest relative difference of units' bytes within one kind of a coarse
// relaxation.
const alikeWithin = 0.1

// end returns the end of the positions from at on whose kinds alternate. The last of them is like
// an earlier one, and at is like a later one. With coarse, it ends the positions of about the same
// bytes.
func (relax *relaxation) end(at int) (end int) {
	if least, most := int64(math.MaxInt64), int64(0); relax.coarse {
		for end = at; end < len(relax.from.Positions) && relax.loose(end); end++ {
			least, most = min(least, relax.one(end).Static), max(most, relax.one(end).Static)
			if float64(most-least) > alikeWithin*float64(most) {
				break
			}
		}
		return end
	}
	first := 0 // like at; an embedding before the layers is like no other
	for next := at; next < len(relax.from.Positions) && relax.loose(next); next++ {
		for before := at; before < next; before++ {
			if relax.one(before) == relax.one(next) {
				end = next + 1
				if before == at {
					first++
				}
			}
		}
	}
	if first == 0 {
		return 0
	}
	return end
}

// one returns the summary of one unit of a position.
func (relax *relaxation) one(at int) timeline.Summary { return relax.from.Positions[at].Summaries[1] }

// class is a set of positions whose units are one kind in the relaxation.
type class struct {
	one   timeline.Summary
	items []int
	kinds []int // kinds of the original problem
}

// join adds the positions [at, end) to the relaxed problem as one position.
func (relax *relaxation) join(at, end int) {
	into, place := relax.into, Position{Summaries: []timeline.Summary{{}}}
	if end == at+1 {
		old := relax.from.Positions[at]
		place.Summaries, place.strides = old.Summaries, old.strides
		kind := relax.kindOf[old.Kinds[0]]
		if kind < 0 {
			kind = relax.add(class{items: relax.from.Kinds[old.Kinds[0]].Items, kinds: old.Kinds}, relax.from.Kinds[old.Kinds[0]].Pin)
		}
		place.Kinds = []int{kind}
	} else {
		classes := relax.classes(at, end)
		for i := range classes {
			place.Kinds = append(place.Kinds, relax.add(classes[i], -1))
		}
		place.sumUp(classes)
	}
	for _, kind := range place.Kinds {
		into.Kinds[kind].Positions = append(into.Kinds[kind].Positions, len(into.Positions))
	}
	into.Positions = append(into.Positions, place)
}

// add makes a kind of the relaxed problem.
func (relax *relaxation) add(units class, pin int) int {
	for _, kind := range units.kinds {
		relax.kindOf[kind] = len(relax.into.Kinds)
	}
	relax.into.Kinds = append(relax.into.Kinds, Kind{Items: slices.Clone(units.items), Pin: pin})
	return len(relax.into.Kinds) - 1
}

// classes returns the kinds of units in the positions. If there are too many, it merges the kinds
// that differ least in bytes, with the smaller of each figure.
func (relax *relaxation) classes(at, end int) (out []class) {
	for ; at < end; at++ {
		one, kind := relax.one(at), relax.from.Positions[at].Kinds[0]
		i := slices.IndexFunc(out, func(like class) bool { return like.one == one })
		if i < 0 {
			i, out = len(out), append(out, class{one: one})
		}
		out[i].items, out[i].kinds = append(out[i].items, relax.from.Kinds[kind].Items...), append(out[i].kinds, kind)
	}
	bytes := func(of *class) int64 { return of.one.Static + of.one.Saved }
	slices.SortStableFunc(out, func(a, b class) int { return int(max(-1, min(1, bytes(&a)-bytes(&b)))) })
	for {
		size := 1
		for i := range out {
			size = min(size*(len(out[i].items)+1), maxTable+1)
		}
		if size <= maxTable && !relax.coarse || len(out) == 1 {
			return out
		}
		near := 1
		for i := 2; i < len(out); i++ {
			if bytes(&out[i])-bytes(&out[i-1]) < bytes(&out[near])-bytes(&out[near-1]) {
				near = i
			}
		}
		into := &out[near-1]
		into.one = into.one.Least(out[near].one)
		into.items, into.kinds = append(into.items, out[near].items...), append(into.kinds, out[near].kinds...)
		out = slices.Delete(out, near, near+1)
	}
}

// sumUp computes the summaries for each number of units. Each figure is the least over all orders,
// which is the least over the kinds of the last unit.
func (place *Position) sumUp(classes []class) {
	size := 1
	for i := range classes {
		place.strides = append(place.strides, size)
		size *= len(classes[i].items) + 1
	}
	place.Summaries = make([]timeline.Summary, size)
	for at := 1; at < size; at++ {
		some := false
		for i := range classes {
			if at/place.strides[i]%(len(classes[i].items)+1) == 0 {
				continue
			}
			run := place.Summaries[at-place.strides[i]].Join(classes[i].one)
			if some {
				run = run.Least(place.Summaries[at])
			}
			place.Summaries[at], some = run, true
		}
	}
}

// moments copies the original problem's moments. Each kind gets the least weight of its original
// kinds, so no device needs less than that.
func (relax *relaxation) moments() {
	for _, moment := range relax.from.Moments() {
		was := moment.Weight
		moment.Weight, moment.Total = slices.Repeat([]int64{-1}, len(relax.into.Kinds)), 0
		for kind, bytes := range was {
			if least := &moment.Weight[relax.kindOf[kind]]; *least < 0 || bytes < *least {
				*least = bytes
			}
		}
		for kind, bytes := range moment.Weight {
			moment.Total += bytes * int64(len(relax.into.Kinds[kind].Items))
		}
		relax.into.known = append(relax.into.known, moment)
	}
}
