package netlist

import (
	"context"
	"math"
	"math/rand/v2"
)

// ThinOrder is the best of some greedy orders: next is the item that opens the
// fewest wires, less those it closes. It returns nil where the context ends
// before the first.
func (nets *Netlist) ThinOrder(ctx context.Context, used []bool) []int32 {
	var best []int32
	least := math.Inf(1)
	rng := rand.New(rand.NewPCG(1, 2))
	for range max(1, min(20, 20_000_000/(len(nets.Nodes)*len(nets.Nodes)+1))) {
		order, work := nets.greedyOrder(ctx, used, rng)
		if order == nil {
			break
		}
		if work < least {
			best, least = order, work
		}
	}
	return best
}

// AnyThinOrder is one greedy order, of those that are equal at every step any. It returns
// nil where the context ends before.
func (nets *Netlist) AnyThinOrder(ctx context.Context, used []bool, rng *rand.Rand) []int32 {
	order, _ := nets.greedyOrder(ctx, used, rng)
	return order
}

// thinning is the state of a greedy order.
type thinning struct {
	*Netlist
	used []bool
	// left are the members of each wire that are still to come.
	left []int
	open int // wires
	// near has a member of an open wire, taken is in the order.
	near, taken []bool
}

func (nets *Netlist) greedyOrder(ctx context.Context, used []bool, rng *rand.Rand) (order []int32, work float64) {
	thin := &thinning{Netlist: nets, used: used, near: make([]bool, len(nets.Nodes)), taken: make([]bool, len(nets.Nodes))}
	for _, wire := range nets.Wires {
		thin.left = append(thin.left, len(wire.Members))
	}
	for len(order) < len(nets.Nodes) {
		if len(order)%64 == 0 && ctx.Err() != nil {
			return nil, 0
		}
		pick, least, ties := -1, math.MaxInt, 0
		for item := range thin.taken {
			if thin.taken[item] {
				continue
			}
			switch grows := thin.grows(item); {
			case grows < least:
				pick, least, ties = item, grows, 1
			case grows == least:
				ties++
				if rng.IntN(ties) == 0 {
					pick = item
				}
			default:
			}
		}
		thin.take(pick)
		order = append(order, int32(pick))
		work += math.Pow(3, float64(min(thin.open, 100)))
	}
	return order, work
}

// grows is how many more wires are open after an item. What is far from the open
// wires waits until they are closed.
func (thin *thinning) grows(item int) int {
	grows := 0
	for _, wire := range thin.WiresOf[item] {
		if thin.used[wire] && thin.left[wire] == len(thin.Wires[wire].Members) {
			grows++
		}
		if thin.used[wire] && thin.left[wire] == 1 {
			grows--
		}
	}
	if !thin.near[item] && thin.open > 0 {
		grows += len(thin.Wires)
	}
	return grows
}

func (thin *thinning) take(item int) {
	thin.taken[item] = true
	for _, wire := range thin.WiresOf[item] {
		if !thin.used[wire] {
			continue
		}
		if thin.left[wire] == len(thin.Wires[wire].Members) {
			thin.open++
			for _, member := range thin.Wires[wire].Members {
				thin.near[member] = true
			}
		}
		thin.left[wire]--
		if thin.left[wire] == 0 {
			thin.open--
		}
	}
}
