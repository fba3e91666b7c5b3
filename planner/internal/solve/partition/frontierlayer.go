package partition

import "context"

// layer numbers the states between two steps. A state is a byte for each
// slot; an open wire has a slot.
type layer struct {
	*netlist
	used, outside []bool
	first, last   []int // step of each wire
	slot          []int // of each open wire
	vacant        []int
	slots         int
	states        []string
}

// layOut walks through the order and numbers the states, or returns nil where
// a step has too many.
func (l *netlist) layOut(ctx context.Context, order []int32, used []bool, limit int) *frontier {
	y := &layer{netlist: l, used: used, outside: l.outside(order), slot: make([]int, len(l.wires)), states: []string{""}}
	y.first, y.last = l.spans(order, used)
	f := &frontier{order: order}
	for step, v := range order {
		arcs := y.next(step, v)
		if len(y.states) > limit || ctx.Err() != nil {
			return nil
		}
		f.arcs = append(f.arcs, arcs)
		f.states = append(f.states, len(y.states))
	}
	return f
}

// next goes on by one item.
func (y *layer) next(step int, v int32) [][2]arc {
	for _, w := range y.at[v] {
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
	arcs := make([][2]arc, len(y.states))
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
			a.to = to
			arcs[s][choice] = a
		}
	}
	for _, w := range y.at[v] {
		if y.used[w] && y.last[w] == step {
			y.vacant = append(y.vacant, y.slot[w])
		}
	}
	y.states = next
	return arcs
}

// choose changes a state by putting v on a side, and tells the cost.
func (y *layer) choose(state []byte, step int, v int32, choice int) arc {
	var a arc
	for _, w := range y.at[v] {
		if y.used[w] {
			a.enter(&state[y.slot[w]], choice, y.outside[w], y.wires[w].cost)
			if y.last[w] == step {
				state[y.slot[w]] = 0
			}
		}
	}
	return a
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
