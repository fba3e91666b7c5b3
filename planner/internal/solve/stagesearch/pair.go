package stagesearch

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// parter divides what two stages hold anew, the best way that keeps the order
// (package pairs), while all others stay. What moves of items and groups miss on
// long ways downhill it has in milliseconds: few states keep the order.
type parter struct {
	*annealer
	*pairs.Divider
	order []int32 // of all items, thin
	used  []bool
	kept  netlist.Kept
	mark  []int32 // of the items: the one whose followers were last looked for
	loose []int32 // of the items: one that is near to what is loose, or is that
	// whole is the load that counts as 1; fine says that loads are told apart as
	// finely as may be.
	whole float64
	fine  bool
	width netlist.Width
}

// newParter is nil where the context ends.
func newParter(ctx context.Context, anneal *annealer) *parter {
	part := &parter{
		annealer: anneal, Divider: pairs.New(), used: make([]bool, len(anneal.cost)),
		kept: netlist.Kept{Before: make([][]int32, anneal.items), After: make([][]int32, anneal.items), Fixed: make([]byte, anneal.items)},
		mark: make([]int32, anneal.items), loose: make([]int32, anneal.items), width: pairWidth,
	}
	for wire := range part.used {
		part.used[wire] = true
	}
	if part.order = part.nets.ThinOrder(ctx, part.used); part.order == nil {
		return nil
	}
	return part
}

// all divides pairs of stages, neighbours first, until none can be divided better.
func (part *parter) all(ctx context.Context) (better bool) {
	part.whole = slices.Max(part.load)
	part.fine = part.whole <= part.bestLoad*(1+finePart)
	for apart := 1; apart < part.devices && ctx.Err() == nil; apart++ {
		better = part.each(ctx, apart) || better
	}
	return better
}

// finePart is how far a placement may be above the best to be divided finely.
const finePart = 0.002

// each divides pairs that are so many places apart. A pair is divided once for all
// that its stages hold.
func (part *parter) each(ctx context.Context, apart int) (better bool) {
	// changes of each stage, and as many as the pair that it is the first of has seen.
	changes, seen := make([]int, part.devices), make([]int, part.devices)
	for i := range seen {
		seen[i] = -1
	}
	for changed := true; changed; {
		changed = false
		for i := 0; i+apart < part.devices && ctx.Err() == nil; i++ {
			if seen[i] == changes[i]+changes[i+apart] {
				continue
			}
			if part.divide(ctx, part.at[i], part.at[i+apart]) {
				changes[i]++
				changes[i+apart]++
				changed, better = true, true
			}
			seen[i] = changes[i] + changes[i+apart]
		}
	}
	return better
}

// divide divides two stages' items anew where that is better: the one stands before
// the other.
func (part *parter) divide(ctx context.Context, one, two int32) (better bool) {
	items, limit := part.itemsOf(one, two), max(part.load[one], part.load[two])*(1-1e-9)
	if limit < netlist.MinLoad || !part.bind(items, one, two) {
		return false
	}
	least := raised(part.load[one]/part.whole) + raised(part.load[two]/part.whole)
	pair := &pairs.Pair{
		One: part.side(one), Two: part.side(two), Size: part.size,
		Limit: limit, Both: 2 * min(limit, part.whole*lowered(least/2)),
	}
	frontier := part.layOut(ctx, items, one, pair)
	if frontier == nil {
		return false
	}
	best := -1
	for i, label := range part.Walk(ctx, frontier, pair, part.cells()) {
		if energy := raised(label.One/part.whole) + raised(label.Two/part.whole); energy < least*(1-1e-9) {
			best, least = i, energy
		}
	}
	if best < 0 {
		return false
	}
	for i, first := range part.Sides(best, len(items)) {
		to := two
		if first {
			to = one
		}
		part.put(items[i], to)
	}
	return true
}

// itemsOf two stages, in the thin order.
func (part *parter) itemsOf(one, two int32) (items []int32) {
	for _, item := range part.order {
		if at := part.place[item]; at == one || at == two {
			items = append(items, item)
		}
	}
	return items
}

// side is a stage in a pair. One that is over its capacity may stay so.
func (part *parter) side(device int32) pairs.Side {
	kind := part.kind[device]
	return pairs.Side{
		Time: part.time[kind*part.items : (kind+1)*part.items], Free: part.free[device],
		Room: max(part.capacity[device], part.bytes[device]),
	}
}

// lowered undoes raised.
func lowered(energy float64) float64 {
	for range highest {
		energy = math.Sqrt(energy)
	}
	return energy
}

// The cells: so few where a placement is not near the best; else as many as make so
// much work with the states that there are.
const fewCells, manyCells, cellWork = 400, 6000, 4_000_000

// cells tell the loads of a pair apart.
func (part *parter) cells() pairs.Cells {
	if !part.fine {
		return pairs.Cells{Fewest: fewCells, Most: fewCells}
	}
	return pairs.Cells{Fewest: fewCells, Most: manyCells, Labels: cellWork}
}
