package downset

import (
	"context"
	"iter"
	"math"
	"slices"
)

// extensions are linear extensions of the order, made in different ways: the
// prefixes of each are down-sets, and the best way through them is an answer.
// The first costs a step for each edge, and comes however soon the end is.
func (o *order) extensions(ctx context.Context) iter.Seq[[]int] {
	last := func(free []int) int { return len(free) - 1 }
	return func(yield func([]int) bool) {
		if !yield(o.extend(o.before, o.after, last)) {
			return
		}
		// From the end, and turned round: sinks wait for their last reader.
		back := o.extend(o.after, o.before, last)
		slices.Reverse(back)
		if !yield(back) {
			return
		}
		if cheapest := o.cheapest(ctx); cheapest != nil {
			yield(cheapest)
		}
	}
}

// extend takes free items as pick says, until it says −1.
func (o *order) extend(before, after [][]int, pick func(free []int) int) []int {
	waits := make([]int, len(before))
	var free, out []int
	for v := range waits {
		if waits[v] = len(before[v]); waits[v] == 0 {
			free = append(free, v)
		}
	}
	for len(free) > 0 {
		i := pick(free)
		if i < 0 {
			return nil
		}
		v := free[i]
		free = slices.Delete(free, i, i+1)
		out = append(out, v)
		for _, w := range after[v] {
			waits[w]--
			if waits[w] == 0 {
				free = append(free, w)
			}
		}
	}
	return out
}

// cheapest always takes the item, of those that are free, after which the
// least crosses the cut; of like ones the latest to come free. Where many are
// free it looks at the last alone, for time. It is nil where the context ends.
func (o *order) cheapest(ctx context.Context) []int {
	set := make([]uint64, (len(o.Nodes)+63)/64)
	return o.extend(o.before, o.after, func(free []int) int {
		const many = 256
		if ctx.Err() != nil {
			return -1
		}
		at, least := 0, math.Inf(1)
		for i := max(0, len(free)-many); i < len(free); i++ {
			if more := o.cutBy(set, free[i]); more <= least {
				at, least = i, more
			}
		}
		v := free[at]
		set[v/64] |= 1 << (v % 64)
		return at
	})
}

// cutBy is how much more crosses the edge of a set when an item joins it.
func (o *order) cutBy(set []uint64, v int) float64 {
	more := 0.0
	for _, e := range o.Touching[v] {
		n := &o.Nets[e]
		inside, all := 0, len(n.Sinks)+1
		for _, u := range append([]int{n.Source}, n.Sinks...) {
			inside += int(set[u/64] >> (u % 64) & 1)
		}
		if inside == 0 {
			more += n.Cost
		}
		if inside == all-1 {
			more -= n.Cost
		}
	}
	return more
}
