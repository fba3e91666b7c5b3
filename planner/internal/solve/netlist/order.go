package netlist

import (
	"context"
	"math"
	"math/rand/v2"
)

// ThinOrder is the best of some greedy orders: next is the item that opens the
// fewest wires, less those it closes. It returns nil where the context ends
// before the first.
func (l *Netlist) ThinOrder(ctx context.Context, used []bool) []int32 {
	var best []int32
	least := math.Inf(1)
	rng := rand.New(rand.NewPCG(1, 2))
	for range max(1, min(20, 20_000_000/(len(l.Nodes)*len(l.Nodes)+1))) {
		order, work := l.greedyOrder(ctx, used, rng)
		if order == nil {
			break
		}
		if work < least {
			best, least = order, work
		}
	}
	return best
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

func (l *Netlist) greedyOrder(ctx context.Context, used []bool, rng *rand.Rand) (order []int32, work float64) {
	t := &thinning{Netlist: l, used: used, near: make([]bool, len(l.Nodes)), taken: make([]bool, len(l.Nodes))}
	for _, w := range l.Wires {
		t.left = append(t.left, len(w.Members))
	}
	for len(order) < len(l.Nodes) {
		if len(order)%64 == 0 && ctx.Err() != nil {
			return nil, 0
		}
		pick, least, ties := -1, math.MaxInt, 0
		for v := range t.taken {
			if t.taken[v] {
				continue
			}
			switch grows := t.grows(v); {
			case grows < least:
				pick, least, ties = v, grows, 1
			case grows == least:
				ties++
				if rng.IntN(ties) == 0 {
					pick = v
				}
			default:
			}
		}
		t.take(pick)
		order = append(order, int32(pick))
		work += math.Pow(3, float64(min(t.open, 100)))
	}
	return order, work
}

// grows is how many more wires are open after v. What is far from the open
// wires waits until they are closed.
func (t *thinning) grows(v int) int {
	grows := 0
	for _, w := range t.WiresOf[v] {
		if t.used[w] && t.left[w] == len(t.Wires[w].Members) {
			grows++
		}
		if t.used[w] && t.left[w] == 1 {
			grows--
		}
	}
	if !t.near[v] && t.open > 0 {
		grows += len(t.Wires)
	}
	return grows
}

func (t *thinning) take(v int) {
	t.taken[v] = true
	for _, w := range t.WiresOf[v] {
		if !t.used[w] {
			continue
		}
		if t.left[w] == len(t.Wires[w].Members) {
			t.open++
			for _, m := range t.Wires[w].Members {
				t.near[m] = true
			}
		}
		t.left[w]--
		if t.left[w] == 0 {
			t.open--
		}
	}
}
