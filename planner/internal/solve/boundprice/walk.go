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
// cannot become dearer than what is asked for are dropped: a Lagrangian bound
// of what the items to come can add, exact for each state (completion.go),
// tells which, and few are left.
type walker struct {
	*netlist.Frontier
	completion
	time, size []float64
	room       float64
	loose      bool // the room does not count for now
	// cells is the most labels of one state, above which they are joined.
	cells int
	// hand is how many sets a walk hands back.
	hand int
	// most is how many labels a walk makes at most.
	most int
	// made counts labels, kept or not: the work.
	made, swept int
	total       int  // states
	joined      bool // labels of this walk were: before, none that is beaten has more gain
	beam, cut   int  // the most labels of a state, and how often there were more
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

func newWalker(frontier *netlist.Frontier, time, size []float64, room float64) *walker {
	walk := &walker{
		Frontier: frontier, completion: newCompletion(frontier.States, !math.IsInf(room, 1)),
		time: time, size: size, room: room, hand: handed, most: mostMade, trace: make([][]int32, len(frontier.Order)),
	}
	for step, states := range frontier.States {
		walk.total += states
		into := inward{make([]int32, states+1), make([]int32, 2*len(frontier.Arcs[step]))}
		for _, arcs := range frontier.Arcs[step] {
			for _, arc := range arcs {
				if arc.To != netlist.Nowhere {
					into.first[arc.To+1]++
				}
			}
		}
		for state := range states {
			into.first[state+1] += into.first[state]
		}
		at := slices.Clone(into.first)
		for state, arcs := range frontier.Arcs[step] {
			for choice, arc := range arcs {
				if arc.To == netlist.Nowhere {
					continue
				}
				into.from[at[arc.To]] = int32(2*state + choice)
				at[arc.To]++
			}
		}
		walk.into = append(walk.into, into)
	}
	return walk
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
	fits        bool
}

// Labels: how many sets a walk hands back, and the most there may be of all, mostly.
const (
	handed   = 6
	mostMade = 40_000_000
)

// price tells whether a set within the limit and the room is worth more than
// need: then it returns such sets, else none. It returns false where the context
// ends or the labels are too many.
func (walk *walker) price(ctx context.Context, prices []float64, limit, need float64) (sets []found, done bool) {
	least, sets := walk.relax(walk, prices, limit)
	sets = slices.DeleteFunc(sets, func(set found) bool { return set.worth <= need })
	if least <= need || len(sets) > 0 {
		return sets, true
	}
	for _, beam := range [...]int{24, 200, math.MaxInt} { // most find nearly all that is there to find
		if sets, done = walk.loosely(ctx, prices, limit, need, beam); len(sets) > 0 || !done || walk.cut == 0 {
			break
		}
	}
	return sets, done
}

// glance looks for sets worth more than need among the most promising labels of
// each state: it may miss some.
func (walk *walker) glance(ctx context.Context, prices []float64, limit, need float64) (sets []found) {
	const beam = 24
	least, sets := walk.relax(walk, prices, limit)
	sets = slices.DeleteFunc(sets, func(set found) bool { return set.worth <= need })
	for _, set := range sets {
		need = max(need, set.worth)
	}
	const near = 1 + 1e-3
	if least <= need*near {
		return sets
	}
	ends, _ := walk.loosely(ctx, prices, limit, need, beam)
	return append(sets, ends...)
}

// loosely is labelled, but where bytes cost nothing at the best multipliers it
// walks without the capacity first: then labels are compared by load and worth
// alone, and few are left. That is all where nothing is found, or where the
// dearest set has room.
func (walk *walker) loosely(ctx context.Context, prices []float64, limit, need float64, beam int) (sets []found, done bool) {
	if walk.slopes[0].mu == 0 && !math.IsInf(walk.room, 1) {
		walk.loose = true
		sets, done = walk.labelled(ctx, prices, limit, need, beam)
		walk.loose = false
		if !done || len(sets) == 0 || sets[0].fits {
			return slices.DeleteFunc(sets, func(set found) bool { return !set.fits }), done
		}
	}
	return walk.labelled(ctx, prices, limit, need, beam)
}

// labelled walks with at most beam labels of a state and returns the sets of the
// last labels, the dearest first: all have more worth than need.
func (walk *walker) labelled(ctx context.Context, prices []float64, limit, need float64, beam int) (sets []found, done bool) {
	before := walk.made
	walk.beam, walk.cut, walk.joined = beam, 0, false
	walk.labels = append(walk.labels[:0], label{})
	walk.first = append(walk.first[:0], 0, 1)
	for step := range walk.Order {
		if ctx.Err() != nil || walk.made-before > walk.most {
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
		arc := walk.Arcs[step][state][choice]
		load += arc.In
		if choice == 1 {
			load += walk.time[item]
			size += walk.size[item]
			set.worth += prices[item]
			set.items = append(set.items, item)
		}
		state = arc.To
	}
	walk.reached = [2]float64{load, size}
	set.load, set.fits = load, load <= limit && size <= walk.room
	return set
}
