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

// Spine is a spine seen from both ends; from the back when windows are asked for.
type Spine struct {
	forth, back *row
	after       [][]int
	largest     float64
}

// New is nil where devices in use are of several kinds, or one block holds so much
// of the graph that its spine tells little, or the spine and the stages are too many,
// or the context ends. before and after are the items' direct neighbours; no load
// above the largest will be asked about.
func New(ctx context.Context, nets *netlist.Netlist, before, after [][]int, largest float64) *Spine {
	kind := nets.OnlyKind()
	if kind < 0 || len(nets.Nodes) > mostItems {
		return nil
	}
	earlier, later := counted(before, after), counted(after, before)
	out := &Spine{
		forth: newRow(nets, kind, earlier, later), back: newRow(nets, kind, later, earlier),
		after: after, largest: largest * (1 + graph.Rounding),
	}
	if len(out.forth.items)*out.forth.stages > mostBegun {
		return nil
	}
	sums := out.forth.timeTo
	for i := range out.forth.block {
		if time := sums[2*i+1] - sums[2*i]; time > mostOfAll*sums[len(sums)-1] {
			return nil
		}
	}
	if !out.forth.ready(ctx, out.largest) {
		return nil
	}
	return out
}

// ready works out what stretches pay and how blocks may be divided, if that is not
// done; false where the context ends.
func (row *row) ready(ctx context.Context, largest float64) bool {
	if row.paid == nil {
		row.pay(largest)
	}
	for i := len(row.splits); i < len(row.items); i++ {
		if ctx.Err() != nil {
			return false
		}
		row.splits = append(row.splits, row.newSplit(i))
	}
	return true
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
	if _, ok := spine.forth.reach(ctx, limit); !ok {
		return limit
	}
	for high := limit; high-low > near*limit && ctx.Err() == nil; {
		middle := low + (high-low)/2
		if _, ok := spine.forth.reach(ctx, middle); ok {
			high = middle
		} else {
			low, bound = middle, middle
		}
	}
	return bound
}

// Windows are the first and the last stage of each item in any contiguous placement
// whose loads are within the limit, on no more stages than there are items; ok is
// false where there is none, or where the context ends.
func (spine *Spine) Windows(ctx context.Context, limit float64) (first, last []int, ok bool) {
	if !spine.back.ready(ctx, spine.largest) {
		return nil, nil, false
	}
	first, fits := spine.forth.firsts(ctx, limit)
	last, turned := spine.back.firsts(ctx, limit)
	for item := range last {
		last[item] = spine.forth.stages - 1 - last[item]
		fits = fits && first[item] <= last[item]
	}
	return first, last, fits && turned
}

// firsts are the first stages of all items: those of a block come after the spine's
// item before it.
func (row *row) firsts(ctx context.Context, limit float64) (first []int, ok bool) {
	along, ok := row.reach(ctx, limit)
	first = make([]int, len(row.at))
	for item, at := range row.at {
		first[item] = along[(at-1)/2]
	}
	return first, ok && slices.Max(along) < row.stages
}
