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
}

// budget is what the wires may cost where the items take their least time.
func (pair *pair) budget(items []int32) netlist.Budget {
	if pair.freeOne || pair.freeTwo {
		return netlist.AnySet
	}
	left := pair.both
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
func (divide *splitter) walk(ctx context.Context, frontier *netlist.Frontier, pair pair) [][2]float64 {
	divide.makeRoom(frontier)
	divide.lookAhead(frontier, &pair)
	labels, start := [][2]float64{{}}, []int32{0, 1}
	limit := pair.limit
	scale := float64(divide.cells) / limit * (1 - 1e-12)
	for i, item := range frontier.Order {
		if ctx.Err() != nil {
			return nil
		}
		for state, arcs := range frontier.Arcs[i] {
			for choice, arc := range arcs {
				if arc.To == netlist.Nowhere {
					continue
				}
				here, there := pair.adds(item, choice, arc)
				most := pair.both - divide.rest[i+1][arc.To]
				base := int(arc.To) * divide.cells
				for j := start[state]; j < start[state+1]; j++ {
					first, second := labels[j][0]+here, labels[j][1]+there
					if first > limit || second > limit || first+second > most {
						continue
					}
					at := base + min(int(first*scale), divide.cells-1)
					span := &divide.spans[arc.To]
					span[0], span[1] = min(span[0], at), max(span[1], at+1)
					if second < divide.two[at] || (second == divide.two[at] && first < divide.one[at]) {
						divide.one[at], divide.two[at], divide.from[at] = first, second, 2*j+int32(choice)
					}
				}
			}
		}
		divide.work += 200*len(frontier.Arcs[i]) + 10*len(labels)
		labels, start = divide.collect(i, frontier.States[i], labels, start)
	}
	return labels
}

// nothing is a span of no cells.
var nothing = [2]int{math.MaxInt, 0}

// collect takes the labels that no other beats in both loads.
func (divide *splitter) collect(step, states int, labels [][2]float64, start []int32) ([][2]float64, []int32) {
	labels, start, divide.trace[step] = labels[:0], start[:0], divide.trace[step][:0]
	for state := range states {
		start = append(start, int32(len(labels)))
		least := math.Inf(1)
		divide.work += max(0, divide.spans[state][1]-divide.spans[state][0])
		for at := divide.spans[state][0]; at < divide.spans[state][1]; at++ {
			if divide.two[at] < least {
				least = divide.two[at]
				labels = append(labels, [2]float64{divide.one[at], least})
				divide.trace[step] = append(divide.trace[step], divide.from[at])
			}
			divide.one[at], divide.two[at] = math.Inf(1), math.Inf(1)
		}
		divide.spans[state] = nothing
	}
	return labels, append(start, int32(len(labels)))
}

func (divide *splitter) makeRoom(frontier *netlist.Frontier) {
	widest := 0
	for _, count := range frontier.States {
		widest = max(widest, count)
	}
	for len(divide.two) < widest*divide.cells {
		divide.one = append(divide.one, math.Inf(1))
		divide.two = append(divide.two, math.Inf(1))
		divide.from = append(divide.from, 0)
	}
	for len(divide.spans) < widest {
		divide.spans = append(divide.spans, nothing)
	}
	for len(divide.trace) < len(frontier.Order) {
		divide.trace = append(divide.trace, nil)
	}
}
