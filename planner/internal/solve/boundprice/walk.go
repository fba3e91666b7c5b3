package boundprice

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// walker finds the dearest set that one device of a kind can take within a load
// and its capacity, at given prices: a walk along the frontier, item by item in
// or out. A label is what a set so far has of load, size and worth. Labels that
// cannot become dearer than what is asked for are dropped: a walk from the end, with a
// price on bytes (tails.go), tells which, and few are left.
type walker struct {
	*netlist.Frontier
	completion
	time, size []float64
	room       float64
	// turns are the choices at each step and state; least is the least load of a way to it.
	turns [][]turn
	least [][]float64
	*tables
	// nextMu is what a byte costs in the next walk from the end, once one is known.
	nextMu float64
	priced bool
	// cells is the most labels of one state, above which they are joined.
	cells int
	// joined is how many of those cells tails have one for.
	joined int
	// merged: labels of this walk were joined; before, none that is beaten has more gain.
	merged bool
	// bare walks ask no tails, worst is what a label's gain must be more than.
	bare  bool
	worst float64
	// longest is how many labels a walk makes at most.
	longest int
	// hand is how many sets a walk hands back.
	hand int
	// made and tailed count labels and tails, kept or not: the work.
	made, tailed, swept int
	total               int // states
	beam, cut           int // the most labels of a state, and how often there were more
	// starts are the labels by state, before a step; next those made by it.
	labels, next     []label
	first, nextFirst []int32
	ways             []way
	stairs           []stair
	// into are, for each step, the arcs that lead to a state after it.
	into []inward
	// trace are, for each step, where its labels came from: the label before
	// times 2, plus 1 if the item was taken in.
	trace [][]int32
}

// label is what a set so far comes to, or several sets that were joined: the least load
// and size of them, the highest worth, and the most gain, which is worth less what load
// and size cost at the best multipliers. Each join makes load and worth better than any
// one set's, so that after many of them they say little; the gain is that of a set.
type label struct {
	load, size, worth, gain float64
	from                    int32
}

// inward are the arcs into each state, the state before times 2 plus the
// choice: from[first[state]] and on.
type inward struct{ first, from []int32 }

// turn is where leaving an item out and taking it in lead, and the load of each; a state
// that is not, where no set leads.
type turn struct {
	to   [2]int32
	load [2]float64
}

func newWalker(frontier *netlist.Frontier, time, size []float64, room float64) *walker {
	slim := *frontier
	slim.Arcs = nil // turns say the same
	walk := &walker{
		Frontier: &slim, completion: newCompletion(frontier.States),
		time: time, size: size, room: room, hand: handed, longest: mostMade, joined: 1, tables: new(tables),
		trace: make([][]int32, len(frontier.Order)),
	}
	least := []float64{0}
	for step, states := range frontier.States {
		walk.total += states
		turns, next := make([]turn, len(frontier.Arcs[step])), slices.Repeat([]float64{math.Inf(1)}, states+1)
		for state, arcs := range frontier.Arcs[step] {
			turn := &turns[state]
			for choice, arc := range arcs {
				turn.to[choice], turn.load[choice] = arc.To, arc.In
				if choice == 1 {
					turn.load[1] += time[frontier.Order[step]]
				}
				if arc.To == netlist.Nowhere || math.IsInf(turn.load[choice], 1) {
					turn.to[choice], turn.load[choice] = int32(states), 0
				}
				next[turn.to[choice]] = min(next[turn.to[choice]], least[state]+turn.load[choice])
			}
		}
		walk.turns = append(walk.turns, turns)
		walk.least = append(walk.least, least)
		walk.into = append(walk.into, inwards(turns, states))
		least = next
	}
	return walk
}

// inwards are the arcs into each of so many states.
func inwards(turns []turn, states int) inward {
	into := inward{make([]int32, states+2), make([]int32, 2*len(turns))}
	for _, turn := range turns {
		into.first[turn.to[0]+1]++
		into.first[turn.to[1]+1]++
	}
	for state := range states + 1 {
		into.first[state+1] += into.first[state]
	}
	at := slices.Clone(into.first)
	for state, turn := range turns {
		for choice, to := range turn.to {
			into.from[at[to]] = int32(2*state + choice)
			at[to]++
		}
	}
	return into
}

// fine is how many labels of a state there may be for a walk of a second or so.
func (walk *walker) fine() int {
	const some, least, most = 4_000_000, 3000, 20_000
	return min(max(some/max(1, walk.total), least), most)
}

// found is a set that a device can take.
type found struct {
	items       []int32
	load, worth float64
	size        float64
	fits        bool
}

// Labels: how many sets a walk hands back, and the most there may be of all, mostly.
const (
	handed   = 6
	mostMade = 40_000_000
)

// labelled walks with at most beam labels of a state and returns the sets of the
// last labels, the dearest first: all have more worth than need.
func (walk *walker) labelled(ctx context.Context, prices []float64, limit, need float64, beam int) (sets []found, done bool) {
	before := walk.made
	walk.beam, walk.cut, walk.merged = beam, 0, false
	walk.labels = append(walk.labels[:0], label{})
	walk.first = append(walk.first[:0], 0, 1)
	for step := range walk.Order {
		if ctx.Err() != nil || walk.made-before > walk.longest {
			return nil, false
		}
		walk.step(step, prices, limit, need)
		if len(walk.labels) == 0 {
			return nil, true
		}
	}
	slices.SortFunc(walk.labels, func(a, b label) int { return cmp.Compare(b.worth, a.worth) })
	for i := range min(walk.hand, len(walk.labels)) {
		set := walk.setOf(walk.labels[i].from, limit, prices)
		if set.worth = walk.labels[i].worth; set.worth > need {
			sets = append(sets, set)
		}
	}
	return sets, true
}

// setOf is the set behind one of the last labels. Where labels were joined it
// may not fit.
func (walk *walker) setOf(last int32, limit float64, prices []float64) (set found) {
	choices := make([]int32, len(walk.Order))
	at := last
	for step := len(walk.Order) - 1; step >= 0; step-- {
		from := walk.trace[step][at]
		choices[step] = from & 1
		at = from >> 1
	}
	return walk.follow(func(step int, _ int32) int32 { return choices[step] }, limit, prices)
}

// follow walks the choices and sums up what they come to.
func (walk *walker) follow(choose func(step int, state int32) int32, limit float64, prices []float64) (set found) {
	load, size, state := 0.0, 0.0, int32(0)
	for step, item := range walk.Order {
		choice := choose(step, state)
		turn := &walk.turns[step][state]
		load += turn.load[choice]
		if choice == 1 {
			size += walk.size[item]
			set.worth += prices[item]
			set.items = append(set.items, item)
		}
		state = turn.to[choice]
	}
	walk.reached = [2]float64{load, size}
	set.load, set.size, set.fits = load, size, load <= limit && size <= walk.room
	return set
}
