// Package pairs divides what two devices hold between them anew, the best way that
// cells of load can tell apart: a walk along a frontier (package netlist) where each
// label is the two loads so far. What packages anyplace and stagesearch do with two
// devices, and what moves of a few items miss.
package pairs

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Side is one of the two devices.
type Side struct {
	Time []float64 // of the items on it
	Free bool      // it does not pay for what it sends and receives
	// Room bounds the bytes on it; +Inf: nothing does.
	Room float64
	// Load and Bytes are what it has to do and holds whatever becomes of the items.
	Load, Bytes float64
}

// Pair is what the two devices have, and what their loads may come to, each and both.
type Pair struct {
	One, Two    Side
	Limit, Both float64
	Size        []float64 // of the items, in bytes
}

// Budget is what the wires may cost where the items take their least time.
func (pair *Pair) Budget(items []int32) netlist.Budget {
	if pair.One.Free || pair.Two.Free {
		return netlist.AnySet
	}
	left := pair.Both - pair.One.Load - pair.Two.Load
	for _, item := range items {
		left -= min(pair.One.Time[item], pair.Two.Time[item])
	}
	return netlist.Budget{Most: left, Both: true}
}

// adds is what a choice for an item adds to the loads.
func (pair *Pair) adds(item int32, choice int, arc netlist.Arc) (here, there float64) {
	if !pair.One.Free {
		here = arc.In
	}
	if !pair.Two.Free {
		there = arc.Out
	}
	if choice == 1 {
		return here + pair.One.Time[item], there
	}
	return here, there + pair.Two.Time[item]
}

// Label is what a way to divide some items comes to: the two loads, and the bytes on
// the first device.
type Label struct{ One, Two, Bytes float64 }

// Divider has the tables of a walk.
type Divider struct {
	// labels are those of a step, by state from start on and in the order of their first
	// loads; next those made of them.
	labels, next     []Label
	start, nextStart []int32
	// traces are, for each label of next, that it came from times 2, plus 1 if the item
	// was taken in; trace has those of all steps.
	traces []int32
	trace  [][]int32
	runs   []run
	// first and into are a step's arcs by where they lead.
	first, into []int32
	// other are the labels from the front while those from the end are made.
	other      []Label
	otherStart []int32
	// past is what both loads come to at least at each state before a step, and
	// rest is what both loads gain at least behind each state before a step.
	past, rest [][]float64
	// Work counts what was done, in steps of about a nanosecond: it ends a search where
	// a clock would make it differ from run to run.
	Work int
}

// New is a divider.
func New() *Divider { return &Divider{} }

// Sides are those of the items of a label, true for the first device.
func (divide *Divider) Sides(label, items int) []bool {
	side := make([]bool, items)
	j := int32(label)
	for i := items - 1; i >= 0; i-- {
		from := divide.trace[i][j]
		side[i] = from&1 == 1
		j = from >> 1
	}
	return side
}

// lookAhead is what both loads gain at least behind each state before a step.
func (divide *Divider) lookAhead(frontier *netlist.Frontier, pair *Pair) {
	steps := len(frontier.Order)
	for len(divide.rest) <= steps {
		divide.rest = append(divide.rest, nil)
	}
	divide.rest[steps] = append(divide.rest[steps][:0], make([]float64, frontier.States[steps-1])...)
	for step := steps - 1; step >= 0; step-- {
		rest := divide.rest[step][:0]
		for _, arcs := range frontier.Arcs[step] {
			least := math.Inf(1)
			for choice, arc := range arcs {
				if arc.To == netlist.Nowhere {
					continue
				}
				here, there := pair.adds(frontier.Order[step], choice, arc)
				least = min(least, here+there+divide.rest[step+1][arc.To])
			}
			rest = append(rest, least)
		}
		divide.rest[step] = rest
	}
}

// looks is after how many states the clock is looked at: a state may have thousands of
// labels.
const looks = 16

// Walk returns the pairs of loads, both within the limit, at the end, which are good until
// the next walk; none where the context ends.
func (divide *Divider) Walk(ctx context.Context, frontier *netlist.Frontier, pair *Pair, cells Cells) []Label {
	divide.lookAhead(frontier, pair)
	if !divide.forward(ctx, frontier, pair, len(frontier.Order), cells.of(frontier)) {
		return nil
	}
	return divide.labels
}

// forward makes the labels of so many steps, at most so many of a state; false where the
// context ends.
func (divide *Divider) forward(ctx context.Context, frontier *netlist.Frontier, pair *Pair, steps, most int) bool {
	space := newSpace(frontier.Order, pair)
	for len(divide.trace) < len(frontier.Order) {
		divide.trace = append(divide.trace, nil)
	}
	divide.labels = append(divide.labels[:0], Label{pair.One.Load, pair.Two.Load, pair.One.Bytes})
	divide.start = append(divide.start[:0], 0, 1)
	for i, item := range frontier.Order[:steps] {
		if ctx.Err() != nil {
			return false
		}
		space.next(pair.Size[item])
		first, into := divide.inward(frontier.Arcs[i], frontier.States[i])
		divide.begin(i)
		for state := range frontier.States[i] {
			if state%looks == looks-1 && ctx.Err() != nil {
				return false
			}
			for _, from := range into[first[state]:first[state+1]] {
				before, choice := from>>1, int(from&1)
				divide.run(pair, item, choice, frontier.Arcs[i][before][choice], before)
			}
			divide.state(bounds{pair.Limit, pair.Limit, pair.Both - divide.rest[i+1][state]}, most, &space)
		}
		divide.end(i, len(frontier.Arcs[i]))
	}
	return true
}

// begin begins a step.
func (divide *Divider) begin(step int) {
	divide.next, divide.nextStart, divide.traces = divide.next[:0], append(divide.nextStart[:0], 0), divide.trace[step][:0]
	divide.runs = divide.runs[:0]
}

// run adds the labels of a state that lead on by a choice.
func (divide *Divider) run(pair *Pair, item int32, choice int, arc netlist.Arc, from int32) {
	one := run{at: divide.start[from], end: divide.start[from+1], choice: int32(choice)}
	if one.at == one.end {
		return
	}
	if one.more.One, one.more.Two = pair.adds(item, choice, arc); choice == 1 {
		one.more.Bytes = pair.Size[item]
	}
	one.head = divide.labels[one.at].One + one.more.One
	divide.runs = append(divide.runs, one)
}

// state makes the labels of a state of its runs.
func (divide *Divider) state(limits bounds, most int, space *space) {
	divide.merge(limits, space)
	divide.thin(int(divide.nextStart[len(divide.nextStart)-1]), most, space)
	divide.nextStart = append(divide.nextStart, int32(len(divide.next)))
	divide.runs = divide.runs[:0]
}

// end ends a step of so many states.
func (divide *Divider) end(step, states int) {
	divide.Work += 200 * states
	divide.labels, divide.next = divide.next, divide.labels
	divide.start, divide.nextStart = divide.nextStart, divide.start
	divide.trace[step] = divide.traces
}
