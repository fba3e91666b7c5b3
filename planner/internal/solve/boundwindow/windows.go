package boundwindow

import (
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// windows are the first and the last stage of each item in a placement whose
// loads and bytes are all within a limit, as far as its cones tell: all that an
// item comes after must fit the stages up to its own, all that comes after it
// the stages from there on (the head and tail bounds of assembly lines:
// Scholl, Balancing and Sequencing of Assembly Lines, 1999).
type windows struct {
	first, last []int
}

// cones are, for each item, all that it comes after and itself, and all that
// comes after it and itself, as bits.
type cones struct {
	before, after  [][]uint64
	order, back    []int // a linear extension, and turned round
	nextOf, prevOf [][]int
}

func newCones(before, after [][]int) *cones {
	all := &cones{nextOf: after, prevOf: before, order: graph.InOrder(before, after)}
	all.back = slices.Clone(all.order)
	slices.Reverse(all.back)
	all.before, all.after = graph.Cones(all.order, before), graph.Cones(all.back, after)
	return all
}

func has(set []uint64, item int) bool { return set[item/64]>>(item%64)&1 != 0 }

func each(set []uint64, visit func(item int)) {
	for word, members := range set {
		for ; members != 0; members &= members - 1 {
			visit(word*64 + bits.TrailingZeros64(members))
		}
	}
}

// narrow narrows the windows for a limit on the loads and one on the bytes; ok
// is false where an item has none.
func (form *form) narrow(within *windows, limit float64) (ok bool) {
	all := form.cones
	form.heads(within.first, all.order, all.prevOf, all.before, limit)
	// The same from the other end, the stages numbered from there.
	mirrored := make([]int, len(within.last))
	for item, last := range within.last {
		mirrored[item] = form.stages - 1 - last
	}
	form.heads(mirrored, all.back, all.nextOf, all.after, limit)
	ok = true
	for item, first := range mirrored {
		within.last[item] = form.stages - 1 - first
		ok = ok && within.first[item] <= within.last[item]
	}
	return ok
}

// heads raises the first stages. Of the items of a cone whose own first stage is
// i or later, all must fit the stages from i on, for each i.
func (form *form) heads(first []int, order []int, near [][]int, cone [][]uint64, limit float64) {
	stages := form.stages
	times, sizes := make([]float64, stages+1), make([]float64, stages+1)
	for _, item := range order {
		stage := first[item]
		for _, other := range near[item] {
			stage = max(stage, first[other])
		}
		clear(times)
		clear(sizes)
		first[item] = stage
		each(cone[item], func(other int) {
			times[first[other]] += form.time[other]
			sizes[first[other]] += form.size[other]
		})
		for ; stage < stages && !form.fits(times, sizes, stage, limit); stage++ {
			// It goes on; its own costs count from there on.
			times[stage], sizes[stage] = times[stage]-form.time[item], sizes[stage]-form.size[item]
			times[stage+1], sizes[stage+1] = times[stage+1]+form.time[item], sizes[stage+1]+form.size[item]
		}
		first[item] = stage
	}
}

// fits: what must be in the stages from i to the one given, or later, fits them.
func (form *form) fits(times, sizes []float64, stage int, limit float64) bool {
	time, size := 0.0, 0.0
	for i := stage; i >= 0; i-- {
		time, size = time+times[i], size+sizes[i]
		many := float64(stage-i+1) * (1 + graph.Rounding)
		if time > many*limit || size > many*form.room {
			return false
		}
	}
	return true
}

// everywhere are windows of all stages.
func (form *form) everywhere() windows {
	out := windows{make([]int, len(form.time)), make([]int, len(form.time))}
	for item := range out.last {
		out.last[item] = form.stages - 1
	}
	return out
}

func (within *windows) clone() windows {
	return windows{slices.Clone(within.first), slices.Clone(within.last)}
}
