package anyplace

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// pair is what two devices have: the items' times on each, and what their loads may
// come to, each and both.
type pair struct {
	one, two         []float64
	freeOne, freeTwo bool
	limit, both      float64
	// settled is what stays where it is, and all what both hold.
	settled label
	all     float64
	// size are the items' bytes, roomOne and roomTwo the capacities.
	size             []float64
	roomOne, roomTwo float64
}

// label is what the two devices' loads come to so far, and the bytes on the first.
type label struct{ one, two, bytes float64 }

// tight tells that one of the devices may have too many bytes.
func (pair *pair) tight() bool { return pair.all > min(pair.roomOne, pair.roomTwo) }

// budget is what the wires may cost where the items take their least time.
func (pair *pair) budget(items []int32) netlist.Budget {
	if pair.freeOne || pair.freeTwo {
		return netlist.AnySet
	}
	left := pair.both - pair.settled.one - pair.settled.two
	for _, item := range items {
		left -= min(pair.one[item], pair.two[item])
	}
	return netlist.Budget{Most: left, Both: true}
}

// adds is what a choice for an item adds to the loads.
func (pair *pair) adds(item int32, choice int, arc netlist.Arc) (here, there float64) {
	if !pair.freeOne {
		here = arc.In
	}
	if !pair.freeTwo {
		there = arc.Out
	}
	if choice == 1 {
		return here + pair.one[item], there
	}
	return here, there + pair.two[item]
}

// lookAhead is what both loads gain at least behind each state before a step.
func (divide *splitter) lookAhead(frontier *netlist.Frontier, pair *pair) {
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

// walk returns the pairs of loads, both within the limit, at the end;
// none where the context ends.
func (divide *splitter) walk(ctx context.Context, frontier *netlist.Frontier, pair pair) []label {
	grid := divide.makeRoom(frontier, &pair)
	divide.lookAhead(frontier, &pair)
	labels, start := []label{pair.settled}, []int32{0, 1}
	passed := pair.all // of bytes, or what is on either side already
	for _, item := range frontier.Order {
		passed -= pair.size[item]
	}
	for i, item := range frontier.Order {
		if ctx.Err() != nil {
			return nil
		}
		passed += pair.size[item]
		for state, arcs := range frontier.Arcs[i] {
			for choice, arc := range arcs {
				if arc.To == netlist.Nowhere {
					continue
				}
				here, there := pair.adds(item, choice, arc)
				most, bytes := pair.both-divide.rest[i+1][arc.To], float64(choice)*pair.size[item]
				for j := start[state]; j < start[state+1]; j++ {
					next := label{labels[j].one + here, labels[j].two + there, labels[j].bytes + bytes}
					if next.one > pair.limit || next.two > pair.limit || next.one+next.two > most {
						continue
					}
					if grid.buckets > 1 && (next.bytes > pair.roomOne || passed-next.bytes > pair.roomTwo) {
						continue
					}
					divide.put(&grid, arc.To, next, 2*j+int32(choice))
				}
			}
		}
		divide.work += 200*len(frontier.Arcs[i]) + 10*len(labels)
		labels, start = divide.collect(i, frontier.States[i], &grid, labels, start)
	}
	return labels
}
