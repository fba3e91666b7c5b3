package anyplace

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// exact tries every assignment of a small problem, item by item, and turns
// back where a device is already as busy as the best answer's, or all must be
// on average. Loads only grow as items are added.
type exact struct {
	*netlist.Netlist
	kind   []int
	order  []int32
	prices graph.Prices
	// rest is the work, at the prices, of the items from a step on.
	rest []float64
	// paid is what all capacity costs.
	paid float64

	place       []int32 // −1: not yet placed
	held        []int32 // as in placement, of the items placed
	placed      []int32 // members placed, of each wire
	load, bytes []float64
	items       []int // on each device
	best        []int32
	bestLoad    float64
	left, calls int // steps that may still be made, and those made
}

// exactSteps are what the search may take: a fraction of a second.
const exactSteps = 1_500_000

// exact improves the best answer or proves it, if the problem is small.
func (call *anywhere) exact(ctx context.Context, prices graph.Prices) {
	devices := 0
	for _, count := range call.Count {
		devices += count
	}
	tree := &exact{
		Netlist: call.Netlist, kind: call.KindOf(), prices: prices, left: exactSteps, bestLoad: call.Answer.Value,
		place: make([]int32, len(call.Nodes)), held: make([]int32, len(call.Wires)*devices), placed: make([]int32, len(call.Wires)),
		load: make([]float64, devices), bytes: make([]float64, devices), items: make([]int, devices),
		rest: make([]float64, len(call.Nodes)+1),
	}
	used := make([]bool, len(call.Wires))
	for wire := range used {
		used[wire] = true
	}
	if tree.order = call.ThinOrder(ctx, used); tree.order == nil {
		return
	}
	for i := len(tree.order) - 1; i >= 0; i-- {
		tree.rest[i] = tree.rest[i+1] + prices.Work[tree.order[i]]
	}
	for kind := range call.Problem.Kinds {
		tree.paid += prices.Space(&call.Problem.Kinds[kind], kind) * float64(call.Problem.Kinds[kind].Count)
	}
	tree.search(ctx, 0)
	if tree.best != nil {
		call.take(tree.best, tree.bestLoad, "search: the problem is small enough to try every assignment")
	}
	if tree.left > 0 && call.best != nil {
		call.Raise(tree.bestLoad, "search: every smaller load was refuted")
	}
	call.none = tree.left > 0 && call.best == nil
}

// search places the items from a step on.
func (tree *exact) search(ctx context.Context, step int) {
	tree.left -= max(1, len(tree.load)*len(tree.load)/64) // loads are copied for each device
	tree.calls++
	if tree.left <= 0 || (tree.calls%1024 == 0 && ctx.Err() != nil) {
		tree.left = 0
		return
	}
	if step == len(tree.order) {
		tree.bestLoad = 0
		for _, load := range tree.load {
			tree.bestLoad = max(tree.bestLoad, load)
		}
		tree.best = append(tree.best[:0], tree.place...)
		return
	}
	item := tree.order[step]
	fresh := -1 // the kind whose first empty device was tried: the others are like it
	for device := range tree.load {
		kind := tree.kind[device]
		if tree.items[device] == 0 && fresh == kind {
			continue
		}
		if tree.items[device] == 0 {
			fresh = kind
		}
		if math.IsInf(tree.Time[kind][item], 1) || tree.bytes[device]+tree.Size[item] > tree.Capacity[kind] {
			continue
		}
		before := append([]float64(nil), tree.load...)
		tree.put(item, device)
		if tree.hopeful(step + 1) {
			tree.search(ctx, step+1)
		}
		tree.takeBack(item, device)
		copy(tree.load, before)
		if tree.left <= 0 {
			return
		}
	}
}

// hopeful tells whether the best answer may still be beaten.
func (tree *exact) hopeful(step int) bool {
	limit := tree.bestLoad * (1 - graph.Rounding)
	work := tree.rest[step]
	for device, load := range tree.load {
		if load >= limit {
			return false
		}
		kind := tree.kind[device]
		work += tree.prices.Rent[kind] * tree.bytes[device]
		if per := tree.prices.PerTime[kind]; load > 0 && !math.IsInf(per, 1) {
			work += per * load
		}
	}
	return work*(1-graph.Rounding) < limit+tree.paid
}

// put adds an item to a device: a wire that has members elsewhere costs the
// device with its first member there, and the other if that had all of them.
func (tree *exact) put(item int32, device int) {
	devices := len(tree.load)
	for _, wire := range tree.WiresOf[item] {
		held := tree.held[int(wire)*devices : int(wire+1)*devices]
		if held[device] == 0 && tree.placed[wire] > 0 {
			tree.charge(device, tree.Wires[wire].Cost)
			for other, count := range held {
				if count == tree.placed[wire] {
					tree.charge(other, tree.Wires[wire].Cost)
				}
			}
		}
		held[device]++
		tree.placed[wire]++
	}
	tree.load[device] += tree.Time[tree.kind[device]][item]
	tree.bytes[device] += tree.Size[item]
	tree.items[device]++
	tree.place[item] = int32(device)
}

func (tree *exact) charge(device int, cost float64) {
	if !tree.Free[tree.kind[device]] {
		tree.load[device] += cost
	}
}

// takeBack undoes put, but for the loads.
func (tree *exact) takeBack(item int32, device int) {
	for _, wire := range tree.WiresOf[item] {
		tree.held[int(wire)*len(tree.load)+device]--
		tree.placed[wire]--
	}
	tree.bytes[device] -= tree.Size[item]
	tree.items[device]--
}
