package downset

import (
	"context"
	"iter"
	"math"
	"slices"
)

// extensions yields linear extensions of the order, made in different ways. The prefixes of each
// are down-sets, and the best way through them is an answer. The first takes one step per edge, and
// is made even if the context ends.
func (ordered *order) extensions(ctx context.Context) iter.Seq[[]int] {
	last := func(free []int) int { return len(free) - 1 }
	return func(yield func([]int) bool) {
		if !yield(ordered.extend(ordered.before, ordered.after, last)) {
			return
		}
		// Extend from the end, then reverse: sinks come just before their last reader.
		back := ordered.extend(ordered.after, ordered.before, last)
		slices.Reverse(back)
		if !yield(back) {
			return
		}
		if cheapest := ordered.cheapest(ctx); cheapest != nil {
			yield(cheapest)
		}
	}
}

// extend takes free items as pick returns them, until pick returns −1.
func (ordered *order) extend(before, after [][]int, pick func(free []int) int) []int {
	waits := make([]int, len(before))
	var free, out []int
	for item := range waits {
		if waits[item] = len(before[item]); waits[item] == 0 {
			free = append(free, item)
		}
	}
	for len(free) > 0 {
		i := pick(free)
		if i < 0 {
			return nil
		}
		item := free[i]
		free = slices.Delete(free, i, i+1)
		out = append(out, item)
		for _, next := range after[item] {
			waits[next]--
			if waits[next] == 0 {
				free = append(free, next)
			}
		}
	}
	return out
}

// cheapest always takes the free item after which the least crosses the cut; ties go to the item
// that became free last. To save time it looks only at the last 256 free items. It returns nil if
// the context ends.
func (ordered *order) cheapest(ctx context.Context) []int {
	set := make([]uint64, (len(ordered.Nodes)+63)/64)
	return ordered.extend(ordered.before, ordered.after, func(free []int) int {
		const many = 256
		if ctx.Err() != nil {
			return -1
		}
		at, least := 0, math.Inf(1)
		for i := max(0, len(free)-many); i < len(free); i++ {
			if more := ordered.cutBy(set, free[i]); more <= least {
				at, least = i, more
			}
		}
		item := free[at]
		set[item/64] |= 1 << (item % 64)
		return at
	})
}

// cutBy returns how much more crosses the edge of a set when an item joins it.
func (ordered *order) cutBy(set []uint64, item int) float64 {
	more := 0.0
	for _, e := range ordered.Touching[item] {
		net := &ordered.Nets[e]
		inside, all := 0, len(net.Sinks)+1
		for _, other := range append([]int{net.Source}, net.Sinks...) {
			inside += int(set[other/64] >> (other % 64) & 1)
		}
		if inside == 0 {
			more += net.Cost
		}
		if inside == all-1 {
			more -= net.Cost
		}
	}
	return more
}
