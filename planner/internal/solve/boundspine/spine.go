// Package boundspine bounds the largest load of contiguous placements along a
// graph's spine: the items that every other item comes before or after. A stage has
// a stretch of the spine, the blocks within it whole, and parts of the two blocks at
// its ends, so that all that stages have to do with each other is how these are
// divided. A dynamic program goes stage after stage along the spine; of a block that
// was divided it remembers how much the next stage has to do for it, and forgets
// which items these are (state space relaxation: Christofides, Mingozzi and Toth,
// Networks 11, 1981).
package boundspine

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Spine is a spine seen from both ends.
type Spine struct {
	forth, back *row
	after       [][]int
}

// New is nil where devices in use are of several kinds, or one block holds so much
// of the graph that its spine tells little, or the spine and the stages are too many.
// before and after are the items' direct neighbours; no load above the largest will
// be asked about.
func New(nets *netlist.Netlist, before, after [][]int, largest float64) *Spine {
	kind := -1
	for k, count := range nets.Count {
		if count > 0 && kind >= 0 {
			return nil
		}
		if count > 0 {
			kind = k
		}
	}
	if kind < 0 || len(nets.Nodes) > mostItems {
		return nil
	}
	out := &Spine{newRow(nets, kind, before, after), newRow(nets, kind, after, before), after}
	if len(out.forth.items)*out.forth.stages > mostBegun {
		return nil
	}
	sums := out.forth.timeTo
	for i := range out.forth.block {
		if time := sums[2*i+1] - sums[2*i]; time > mostOfAll*sums[len(sums)-1] {
			return nil
		}
	}
	for _, from := range []*row{out.forth, out.back} {
		from.pay(largest * (1 + graph.Rounding))
		for i := range from.items {
			from.splits = append(from.splits, from.newSplit(i))
		}
	}
	return out
}

// What a spine is looked at for: tables grow with the items' square, and the more
// of all time one block holds, the less its spine tells.
const (
	mostItems = 4000
	mostOfAll = 0.5
	mostBegun = 200_000
)

// Bound is a load up to the limit that is known not to be possible, to a part in
// ten thousand the highest that the spine tells; 0 where none above low is found
// before the context ends.
func (spine *Spine) Bound(ctx context.Context, low, limit float64) (bound float64) {
	const near = 1e-4
	if _, ok := spine.forth.reach(limit); !ok {
		return limit
	}
	for high := limit; high-low > near*limit && ctx.Err() == nil; {
		middle := low + (high-low)/2
		if _, ok := spine.forth.reach(middle); ok {
			high = middle
		} else {
			low, bound = middle, middle
		}
	}
	return bound
}

// Windows are the first and the last stage of each item in any contiguous placement
// whose loads are within the limit, on no more stages than there are items; ok is
// false where there is none.
func (spine *Spine) Windows(limit float64) (first, last []int, ok bool) {
	first, fits := spine.forth.firsts(limit)
	last, turned := spine.back.firsts(limit)
	for item := range last {
		last[item] = spine.forth.stages - 1 - last[item]
		fits = fits && first[item] <= last[item]
	}
	return first, last, fits && turned
}

// firsts are the first stages of all items: those of a block come after the spine's
// item before it.
func (row *row) firsts(limit float64) (first []int, ok bool) {
	along, ok := row.reach(limit)
	first = make([]int, len(row.at))
	for item, at := range row.at {
		first[item] = along[(at-1)/2]
	}
	return first, ok && slices.Max(along) < row.stages
}
