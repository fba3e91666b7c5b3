package netlist

import "context"

// layer numbers the states between two steps. A state is a byte for each
// slot; an open wire has a slot.
type layer struct {
	*Netlist
	used, outside []bool
	first, last   []int // step of each wire
	slot          []int // of each open wire
	vacant        []int
	slots         int
	states        []string
}

// LayOut walks through the order and numbers the states, or returns nil where
// a step has too many.
func (l *Netlist) LayOut(ctx context.Context, order []int32, used []bool, limit int) *Frontier {
	y := &layer{Netlist: l, used: used, outside: l.outside(order), slot: make([]int, len(l.Wires)), states: []string{""}}
	y.first, y.last = l.spans(order, used)
	f := &Frontier{Order: order}
	for step, v := range order {
		arcs := y.next(step, v)
		if len(y.states) > limit || ctx.Err() != nil {
			return nil
		}
		f.Arcs = append(f.Arcs, arcs)
		f.States = append(f.States, len(y.states))
	}
	return f
}

// next goes on by one item.
func (y *layer) next(step int, v int32) [][2]Arc {
	for _, w := range y.WiresOf[v] {
		if y.used[w] && y.first[w] == step {
			if n := len(y.vacant); n > 0 {
				y.slot[w], y.vacant = y.vacant[n-1], y.vacant[:n-1]
			} else {
				y.slot[w] = y.slots
				y.slots++
			}
		}
	}
	number := make(map[string]int32)
	var next []string
	arcs := make([][2]Arc, len(y.states))
	key := make([]byte, y.slots)
	for s, state := range y.states {
		for choice := range 2 {
			clear(key)
			copy(key, state)
			a := y.choose(key, step, v, choice)
			to, known := number[string(key)]
			if !known {
				to = int32(len(next))
				next = append(next, string(key))
				number[next[to]] = to
			}
			a.To = to
			arcs[s][choice] = a
		}
	}
	for _, w := range y.WiresOf[v] {
		if y.used[w] && y.last[w] == step {
			y.vacant = append(y.vacant, y.slot[w])
		}
	}
	y.states = next
	return arcs
}

// choose changes a state by putting v on a side, and tells the cost.
func (y *layer) choose(state []byte, step int, v int32, choice int) Arc {
	var a Arc
	for _, w := range y.WiresOf[v] {
		if y.used[w] {
			a.enter(&state[y.slot[w]], choice, y.outside[w], y.Wires[w].Cost)
			if y.last[w] == step {
				state[y.slot[w]] = 0
			}
		}
	}
	return a
}

// enter puts a member of a wire on a side. A wire with members elsewhere
// costs a side as soon as that has one.
func (a *Arc) enter(state *byte, choice int, outside bool, cost float64) {
	now := byte(wireOut + choice)
	switch {
	case *state == now || *state == wireMixed:
		return
	case *state != 0:
		now = wireMixed
		if !outside {
			a.In += cost
			a.Out += cost
		}
	default:
	}
	*state = now
	if outside && choice == 1 {
		a.In += cost
	} else if outside {
		a.Out += cost
	}
}

// outside tells the wires that have members which are not in the order.
func (l *Netlist) outside(order []int32) []bool {
	left := make([]int, len(l.Wires))
	for w := range left {
		left[w] = len(l.Wires[w].Members)
	}
	for _, v := range order {
		for _, w := range l.WiresOf[v] {
			left[w]--
		}
	}
	out := make([]bool, len(l.Wires))
	for w := range out {
		out[w] = left[w] > 0
	}
	return out
}
