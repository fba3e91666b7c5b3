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
	// cells tell loads apart, rooms of them bytes where these bind.
	cells, rooms int
	best         []Label
	from         []int32
	trace        [][]int32
	// spans are the cells of each state that have a label.
	spans [][2]int
	// rest is what both loads gain at least behind each state before a step.
	rest [][]float64
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

// Walk returns the pairs of loads, both within the limit, at the end; none where the
// context ends.
func (divide *Divider) Walk(ctx context.Context, frontier *netlist.Frontier, pair *Pair, cells Cells) []Label {
	space := newSpace(frontier.Order, pair)
	divide.makeRoom(frontier, &space, cells)
	divide.lookAhead(frontier, pair)
	labels, start := []Label{{pair.One.Load, pair.Two.Load, pair.One.Bytes}}, []int32{0, 1}
	for i, item := range frontier.Order {
		if ctx.Err() != nil {
			return nil
		}
		space.next(pair.Size[item])
		for state, arcs := range frontier.Arcs[i] {
			if state%looks == looks-1 && ctx.Err() != nil {
				return nil
			}
			for choice, arc := range arcs {
				if arc.To == netlist.Nowhere {
					continue
				}
				next := going{choice: int32(choice), to: int(arc.To), limit: pair.Limit, most: pair.Both - divide.rest[i+1][arc.To]}
				if next.more.One, next.more.Two = pair.adds(item, choice, arc); choice == 1 {
					next.more.Bytes = pair.Size[item]
				}
				divide.extend(labels, start[state:state+2], &next, &space)
			}
		}
		divide.Work += 200*len(frontier.Arcs[i]) + 10*len(labels)
		labels, start = divide.collect(i, frontier.States[i], labels, start)
	}
	return labels
}
