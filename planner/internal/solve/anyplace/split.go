package anyplace

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// splitter divides two devices' items between them anew, the best way that
// cells of load can tell apart: a walk along the frontier where each label is
// the two loads so far.
type splitter struct {
	*netlist.Netlist
	order []int32 // of all items, thin
	used  []bool
	cells int
	// one is the first device's load in each cell, two the second's.
	one, two []float64
	from     []int32
	trace    [][]int32
	// work counts what was done, in steps of about a nanosecond: it ends the
	// search where a clock would make it differ from run to run.
	work int
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, nets *netlist.Netlist, cells int) *splitter {
	divide := &splitter{Netlist: nets, cells: cells, used: make([]bool, len(nets.Wires))}
	for wire := range divide.used {
		divide.used[wire] = true
	}
	if divide.order = nets.ThinOrder(ctx, divide.used); divide.order == nil {
		return nil
	}
	return divide
}

// splitStates bounds the work: wider pairs are left to annealing.
const splitStates = 300

// split finds sides for the items of two devices, true for the first, that make
// the larger of their loads less than it is.
func (divide *splitter) split(ctx context.Context, anneal *annealer, device, other int32) (items []int32, side []bool) {
	for _, item := range divide.order {
		if anneal.place[item] == device || anneal.place[item] == other {
			items = append(items, item)
		}
	}
	frontier := divide.LayOut(ctx, items, divide.used, splitStates, netlist.AnySet)
	limit := max(anneal.load[device], anneal.load[other]) * (1 - 1e-9)
	if frontier == nil || limit < netlist.MinLoad {
		return nil, nil
	}
	labels := divide.walk(ctx, frontier, divide.Time[anneal.kind[device]], divide.Time[anneal.kind[other]], anneal.Free[anneal.kind[device]], anneal.Free[anneal.kind[other]], limit)
	best, least := -1, anneal.energies[device]+anneal.energies[other]
	for i, label := range labels {
		if here := anneal.energy(device, label[0], 0) + anneal.energy(other, label[1], 0); here < least*(1-1e-9) {
			best, least = i, here
		}
	}
	if best < 0 {
		return nil, nil
	}
	side = make([]bool, len(items))
	j := int32(best)
	for i := len(items) - 1; i >= 0; i-- {
		from := divide.trace[i][j]
		side[i] = from&1 == 1
		j = from >> 1
	}
	return items, side
}

// polish splits pair after pair until none can be split better.
func (divide *splitter) polish(ctx context.Context, anneal *annealer) (better bool) {
	for changed := true; changed; {
		changed = false
		for device := range int32(anneal.devices) {
			for other := range device {
				if ctx.Err() != nil {
					return better
				}
				items, side := divide.split(ctx, anneal, device, other)
				if items == nil {
					continue
				}
				before := append([]int32(nil), anneal.place...)
				total := anneal.energies[device] + anneal.energies[other]
				for i, item := range items {
					to := other
					if side[i] {
						to = device
					}
					if anneal.place[item] != to {
						anneal.move(item, to)
					}
				}
				anneal.settle(device, other)
				if anneal.energies[device]+anneal.energies[other] >= total {
					anneal.refresh(before) // a capacity is in the way
					continue
				}
				changed, better = true, true
			}
		}
	}
	return better
}

// walk returns the pairs of loads, both within the limit, at the end;
// none where the context ends.
func (divide *splitter) walk(ctx context.Context, frontier *netlist.Frontier, one, two []float64, freeOne, freeTwo bool, limit float64) [][2]float64 {
	divide.makeRoom(frontier)
	labels, start := [][2]float64{{}}, []int32{0, 1}
	scale := float64(divide.cells) / limit * (1 - 1e-12)
	for i, item := range frontier.Order {
		if ctx.Err() != nil {
			return nil
		}
		for state, arcs := range frontier.Arcs[i] {
			for choice, arc := range arcs {
				here, there := arc.In, arc.Out
				if freeOne {
					here = 0
				}
				if freeTwo {
					there = 0
				}
				if choice == 1 {
					here += one[item]
				} else {
					there += two[item]
				}
				base := int(arc.To) * divide.cells
				for j := start[state]; j < start[state+1]; j++ {
					first, second := labels[j][0]+here, labels[j][1]+there
					if first > limit || second > limit {
						continue
					}
					if at := base + min(int(first*scale), divide.cells-1); second < divide.two[at] || (second == divide.two[at] && first < divide.one[at]) {
						divide.one[at], divide.two[at], divide.from[at] = first, second, 2*j+int32(choice)
					}
				}
			}
		}
		divide.work += 200*len(frontier.Arcs[i]) + 10*len(labels) + divide.cells*frontier.States[i]
		labels, start = divide.collect(i, frontier.States[i], labels, start)
	}
	return labels
}

// collect takes the labels that no other beats in both loads.
func (divide *splitter) collect(step, states int, labels [][2]float64, start []int32) ([][2]float64, []int32) {
	labels, start, divide.trace[step] = labels[:0], start[:0], divide.trace[step][:0]
	for state := range states {
		start = append(start, int32(len(labels)))
		least := math.Inf(1)
		for at := state * divide.cells; at < (state+1)*divide.cells; at++ {
			if divide.two[at] < least {
				least = divide.two[at]
				labels = append(labels, [2]float64{divide.one[at], least})
				divide.trace[step] = append(divide.trace[step], divide.from[at])
			}
			divide.one[at], divide.two[at] = math.Inf(1), math.Inf(1)
		}
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
	for len(divide.trace) < len(frontier.Order) {
		divide.trace = append(divide.trace, nil)
	}
}
