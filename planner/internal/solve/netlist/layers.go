package netlist

import (
	"context"
	"math"
)

// layer numbers the states between two steps. A state is a byte for each
// slot; an open wire has a slot.
type layer struct {
	*Netlist
	Around
	used        []bool
	first, last []int // step of each wire
	slot        []int // of each open wire
	vacant      []int
	slots       int
	states      []string
	// least is what a set of each state costs at least so far: those over most
	// are left out.
	least []float64
	Budget
	keep   *keeper   // nil: no order is kept
	beside *corridor // nil: all states count
}

// Budget bounds what a set that is looked for may cost: its wires, and its items
// where they have costs of their own.
type Budget struct {
	Most  float64
	Items []float64 // nil: they cost nothing
	Both  bool      // the wires of what it leaves cost too
}

// AnySet may cost what it likes.
var AnySet = Budget{Most: math.Inf(1)}

// Nowhere is where an arc leads that no set within the budget takes.
const Nowhere = -1

// LayOut walks through the order and numbers the states that sets within the
// budget come to, or returns nil where a step or all have too many.
func (nets *Netlist) LayOut(ctx context.Context, order []int32, used []bool, most Width, budget Budget) *Frontier {
	return nets.layer(used, budget, Around{Outside: nets.outside(order)}).layOut(ctx, order, most)
}

// LayOutKept is LayOut of sets that keep an order.
func (nets *Netlist) LayOutKept(ctx context.Context, order []int32, used []bool, most Width, budget Budget, kept *Kept) *Frontier {
	level := nets.layer(used, budget, Around{Outside: nets.outside(order)})
	level.keep = newKeeper(kept)
	return level.layOut(ctx, order, most)
}

// LayOutIn is LayOut where what is around the order is on one of the sides, too.
func (nets *Netlist) LayOutIn(
	ctx context.Context, order []int32, used []bool, most Width, budget Budget, around Around,
) *Frontier {
	return nets.layer(used, budget, around).layOut(ctx, order, most)
}

// LayOutBeside is LayOutIn of at most so many states a step: those from which the rest of
// an answer is the cheapest for both sides, whose costs the budget bounds. It finds room
// for any order, and leaves out what is far from the answer. It is nil where the context
// ends.
func (nets *Netlist) LayOutBeside(
	ctx context.Context, order []int32, used []bool, most int, budget Budget, around Around, taken func(item int32) bool,
) *Frontier {
	level := nets.layer(used, budget, around)
	level.Both = true
	level.beside = level.newCorridor(order, taken, most)
	return level.layOut(ctx, order, Width{Step: math.MaxInt, All: math.MaxInt})
}

// layer is before the first step.
func (nets *Netlist) layer(used []bool, budget Budget, around Around) *layer {
	return &layer{
		Netlist: nets, used: used, Around: around, slot: make([]int, len(nets.Wires)),
		states: []string{""}, least: []float64{0}, Budget: budget,
	}
}

func (level *layer) layOut(ctx context.Context, order []int32, most Width) *Frontier {
	level.first, level.last = level.spans(order, level.used)
	frontier, total := &Frontier{Order: order}, 0
	for step, item := range order {
		arcs := level.next(step, item)
		total += len(level.states)
		if len(level.states) > most.Step || total > most.All || ctx.Err() != nil {
			return nil
		}
		frontier.Arcs = append(frontier.Arcs, arcs)
		frontier.States = append(frontier.States, len(level.states))
	}
	return frontier
}

// next goes on by one item.
func (level *layer) next(step int, item int32) [][2]Arc {
	for _, wire := range level.WiresOf[item] {
		if level.used[wire] && level.first[wire] == step {
			level.slot[wire] = level.take()
		}
	}
	level.keep.open(level, item)
	number := make(map[string]int32)
	var next []string
	var least []float64
	arcs := make([][2]Arc, len(level.states))
	key := make([]byte, level.slots)
	for stage, state := range level.states {
		for choice := range 2 {
			clear(key)
			copy(key, state)
			if !level.keep.allows(key, item, choice) {
				arcs[stage][choice] = Arc{To: Nowhere}
				continue
			}
			arc := level.choose(key, step, item, choice)
			cost := level.least[stage] + arc.In
			if level.Both {
				cost += arc.Out
			}
			if choice == 1 && level.Items != nil {
				cost += level.Items[item]
			}
			if cost > level.Most {
				arcs[stage][choice] = Arc{To: Nowhere}
				continue
			}
			to, known := number[string(key)]
			if !known {
				to = int32(len(next))
				next = append(next, string(key))
				least = append(least, cost)
				number[next[to]] = to
			}
			least[to] = min(least[to], cost)
			arc.To = to
			arcs[stage][choice] = arc
		}
	}
	for _, wire := range level.WiresOf[item] {
		if level.used[wire] && level.last[wire] == step {
			level.vacant = append(level.vacant, level.slot[wire])
		}
	}
	level.keep.close(level, item)
	level.states, level.least = next, least
	level.beside.pass(level, step, item)
	level.beside.narrow(level, arcs)
	return arcs
}

// take is a slot that nothing has.
func (level *layer) take() int {
	if count := len(level.vacant); count > 0 {
		slot := level.vacant[count-1]
		level.vacant = level.vacant[:count-1]
		return slot
	}
	level.slots++
	return level.slots - 1
}

// choose changes a state by putting an item on a side, and tells the cost.
func (level *layer) choose(state []byte, step int, item int32, choice int) Arc {
	var arc Arc
	for _, wire := range level.WiresOf[item] {
		if level.used[wire] {
			if level.Sides != nil && level.first[wire] == step {
				state[level.slot[wire]] = level.Sides[wire]
			}
			arc.enter(&state[level.slot[wire]], choice, level.Outside[wire], level.Wires[wire].Cost)
			if level.last[wire] == step {
				state[level.slot[wire]] = 0
			}
		}
	}
	return arc
}

// enter puts a member of a wire on a side. A wire with members elsewhere
// costs a side as soon as that has one.
func (arc *Arc) enter(state *byte, choice int, outside bool, cost float64) {
	now := byte(wireOut + choice)
	switch {
	case *state == now || *state == wireMixed:
		return
	case *state != 0:
		now = wireMixed
		if !outside {
			arc.In += cost
			arc.Out += cost
		}
	default:
	}
	*state = now
	if outside && choice == 1 {
		arc.In += cost
	} else if outside {
		arc.Out += cost
	}
}
