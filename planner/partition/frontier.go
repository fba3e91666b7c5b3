package partition

import (
	"context"
	"math"
	"math/rand/v2"
)

// frontier lays out the choice of one device's set as a walk: item by item in
// or out, in an order that keeps few wires open. What was chosen before
// matters only through the open wires: all members in so far, all out, or
// mixed, which is paid. This is dynamic programming over a path decomposition
// of the hypergraph (Robertson and Seymour); the graphs of neural networks are
// long and thin, so states are few.
type frontier struct {
	order []int32
	// arcs holds, for each step and each state before it, where leaving the
	// item out and taking it in leads.
	arcs   [][][2]arc
	states []int // after each step
}

// arc is a choice. A wire that becomes mixed costs the device that has the
// items in, and another that has those left out, if there is just one.
type arc struct {
	to      int32
	in, out float64
}

const (
	wireOut   = 1
	wireIn    = 2
	wireMixed = 3
)

// newFrontier leaves out wires, the cheapest for the width they take first,
// until no step has more than widestStates: what is left out only lowers
// loads, so a bound stays one. It returns nil where the context ends.
func (l *netlist) newFrontier(ctx context.Context, withWires bool) *frontier {
	used := make([]bool, len(l.wires))
	for w := range used {
		used[w] = withWires
	}
	for ctx.Err() == nil {
		order := l.thinOrder(used)
		if f := l.layOut(ctx, order, used, widestStates); f != nil {
			return f
		}
		l.dropWire(order, used)
	}
	return nil
}

// spans are the first and last steps of the used wires.
func (l *netlist) spans(order []int32, used []bool) (first, last []int) {
	first, last = make([]int, len(l.wires)), make([]int, len(l.wires))
	for w := range first {
		first[w], last[w] = math.MaxInt, -1
	}
	for i, v := range order {
		for _, w := range l.at[v] {
			if used[w] {
				first[w], last[w] = min(first[w], i), i
			}
		}
	}
	return first, last
}

func (l *netlist) dropWire(order []int32, used []bool) {
	first, last := l.spans(order, used)
	drop, worth := -1, math.Inf(1)
	for w := range used {
		if used[w] {
			if x := l.wires[w].cost / float64(last[w]-first[w]); x < worth {
				drop, worth = w, x
			}
		}
	}
	used[drop] = false
}

// layOut walks through the order and numbers the states, or returns nil where
// a step has too many.
func (l *netlist) layOut(ctx context.Context, order []int32, used []bool, limit int) *frontier {
	first, last := l.spans(order, used)
	f := &frontier{order: order}
	slot := make([]int, len(l.wires))
	var vacant []int
	slots := 0
	states := []string{""}
	outside := l.outside(order)
	for i, v := range order {
		for _, w := range l.at[v] {
			if used[w] && first[w] == i {
				if n := len(vacant); n > 0 {
					slot[w], vacant = vacant[n-1], vacant[:n-1]
				} else {
					slot[w] = slots
					slots++
				}
			}
		}
		number := make(map[string]int32)
		var next []string
		arcs := make([][2]arc, len(states))
		key := make([]byte, slots)
		for s, state := range states {
			for choice := range 2 {
				clear(key)
				copy(key, state)
				var a arc
				for _, w := range l.at[v] {
					if used[w] {
						a.enter(&key[slot[w]], choice, outside[w], l.wires[w].cost)
						if last[w] == i {
							key[slot[w]] = 0
						}
					}
				}
				to, known := number[string(key)]
				if !known {
					to = int32(len(next))
					next = append(next, string(key))
					number[next[to]] = to
				}
				a.to = to
				arcs[s][choice] = a
			}
		}
		for _, w := range l.at[v] {
			if used[w] && last[w] == i {
				vacant = append(vacant, slot[w])
			}
		}
		if len(next) > limit || ctx.Err() != nil {
			return nil
		}
		states = next
		f.arcs = append(f.arcs, arcs)
		f.states = append(f.states, len(states))
	}
	return f
}

// enter puts a member of a wire on a side. A wire with members elsewhere
// costs a side as soon as that has one.
func (a *arc) enter(state *byte, choice int, outside bool, cost float64) {
	now := byte(wireOut + choice)
	switch {
	case *state == now || *state == wireMixed:
		return
	case *state != 0:
		now = wireMixed
		if !outside {
			a.in += cost
			a.out += cost
		}
	default:
	}
	*state = now
	if outside && choice == 1 {
		a.in += cost
	} else if outside {
		a.out += cost
	}
}

// outside tells the wires that have members which are not in the order.
func (l *netlist) outside(order []int32) []bool {
	left := make([]int, len(l.wires))
	for w := range left {
		left[w] = len(l.wires[w].members)
	}
	for _, v := range order {
		for _, w := range l.at[v] {
			left[w]--
		}
	}
	out := make([]bool, len(l.wires))
	for w := range out {
		out[w] = left[w] > 0
	}
	return out
}

// thinOrder is the best of some greedy orders: next is the item that opens the
// fewest wires, less those it closes.
func (l *netlist) thinOrder(used []bool) []int32 {
	var best []int32
	least := math.Inf(1)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		if order, work := l.greedyOrder(used, rng); work < least {
			best, least = order, work
		}
	}
	return best
}

func (l *netlist) greedyOrder(used []bool, rng *rand.Rand) (order []int32, work float64) {
	left := make([]int, len(l.wires))
	for w, wire := range l.wires {
		left[w] = len(wire.members)
	}
	candidate := make([]bool, len(l.nodes)) // has an open wire
	taken := make([]bool, len(l.nodes))
	open := 0
	for len(order) < len(l.nodes) {
		pick, least, ties := -1, math.MaxInt, 0
		for v := range taken {
			if taken[v] {
				continue
			}
			grows := 0
			for _, w := range l.at[v] {
				if used[w] && left[w] == len(l.wires[w].members) {
					grows++
				}
				if used[w] && left[w] == 1 {
					grows--
				}
			}
			if !candidate[v] && open > 0 {
				grows += 1000 // finish what is open first
			}
			switch {
			case grows < least:
				pick, least, ties = v, grows, 1
			case grows == least:
				ties++
				if rng.IntN(ties) == 0 {
					pick = v
				}
			}
		}
		taken[pick] = true
		order = append(order, int32(pick))
		for _, w := range l.at[pick] {
			if !used[w] {
				continue
			}
			if left[w] == len(l.wires[w].members) {
				open++
				for _, m := range l.wires[w].members {
					candidate[m] = true
				}
			}
			if left[w]--; left[w] == 0 {
				open--
			}
		}
		work += math.Pow(3, float64(min(open, 100)))
	}
	return order, work
}
