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
func newSplitter(ctx context.Context, l *netlist.Netlist, cells int) *splitter {
	s := &splitter{Netlist: l, cells: cells, used: make([]bool, len(l.Wires))}
	for w := range s.used {
		s.used[w] = true
	}
	if s.order = l.ThinOrder(ctx, s.used); s.order == nil {
		return nil
	}
	return s
}

// splitStates bounds the work: wider pairs are left to annealing.
const splitStates = 300

// split finds sides for the items of devices d and e, true for d, that make
// the largest of their loads less than it is.
func (s *splitter) split(ctx context.Context, a *annealer, d, e int32) (items []int32, side []bool) {
	for _, v := range s.order {
		if a.place[v] == d || a.place[v] == e {
			items = append(items, v)
		}
	}
	f := s.LayOut(ctx, items, s.used, splitStates)
	limit := max(a.load[d], a.load[e]) * (1 - 1e-9)
	if f == nil || limit < netlist.LeastLoad {
		return nil, nil
	}
	labels := s.walk(ctx, f, s.Time[a.kind[d]], s.Time[a.kind[e]], a.Free[a.kind[d]], a.Free[a.kind[e]], limit)
	best, least := -1, a.energies[d]+a.energies[e]
	for i, l := range labels {
		if x := a.energy(d, l[0], 0) + a.energy(e, l[1], 0); x < least*(1-1e-9) {
			best, least = i, x
		}
	}
	if best < 0 {
		return nil, nil
	}
	side = make([]bool, len(items))
	j := int32(best)
	for i := len(items) - 1; i >= 0; i-- {
		from := s.trace[i][j]
		side[i] = from&1 == 1
		j = from >> 1
	}
	return items, side
}

// polish splits pair after pair until none can be split better.
func (s *splitter) polish(ctx context.Context, a *annealer) (better bool) {
	for changed := true; changed; {
		changed = false
		for d := range int32(a.devices) {
			for e := range d {
				if ctx.Err() != nil {
					return better
				}
				items, side := s.split(ctx, a, d, e)
				if items == nil {
					continue
				}
				before := append([]int32(nil), a.place...)
				total := a.energies[d] + a.energies[e]
				for i, v := range items {
					to := e
					if side[i] {
						to = d
					}
					if a.place[v] != to {
						a.move(v, to)
					}
				}
				a.settle(d, e)
				if a.energies[d]+a.energies[e] >= total {
					a.refresh(before) // a capacity is in the way
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
func (s *splitter) walk(ctx context.Context, f *netlist.Frontier, one, two []float64, freeOne, freeTwo bool, limit float64) [][2]float64 {
	s.makeRoom(f)
	labels, start := [][2]float64{{}}, []int32{0, 1}
	scale := float64(s.cells) / limit * (1 - 1e-12)
	for i, v := range f.Order {
		if ctx.Err() != nil {
			return nil
		}
		for state, arcs := range f.Arcs[i] {
			for choice, a := range arcs {
				x, y := a.In, a.Out
				if freeOne {
					x = 0
				}
				if freeTwo {
					y = 0
				}
				if choice == 1 {
					x += one[v]
				} else {
					y += two[v]
				}
				base := int(a.To) * s.cells
				for j := start[state]; j < start[state+1]; j++ {
					p, q := labels[j][0]+x, labels[j][1]+y
					if p > limit || q > limit {
						continue
					}
					if at := base + min(int(p*scale), s.cells-1); q < s.two[at] || (q == s.two[at] && p < s.one[at]) {
						s.one[at], s.two[at], s.from[at] = p, q, 2*j+int32(choice)
					}
				}
			}
		}
		s.work += 200*len(f.Arcs[i]) + 10*len(labels) + s.cells*f.States[i]
		labels, start = s.collect(i, f.States[i], labels, start)
	}
	return labels
}

// collect takes the labels that no other beats in both loads.
func (s *splitter) collect(step, states int, labels [][2]float64, start []int32) ([][2]float64, []int32) {
	labels, start, s.trace[step] = labels[:0], start[:0], s.trace[step][:0]
	for state := range states {
		start = append(start, int32(len(labels)))
		least := math.Inf(1)
		for at := state * s.cells; at < (state+1)*s.cells; at++ {
			if s.two[at] < least {
				least = s.two[at]
				labels = append(labels, [2]float64{s.one[at], least})
				s.trace[step] = append(s.trace[step], s.from[at])
			}
			s.one[at], s.two[at] = math.Inf(1), math.Inf(1)
		}
	}
	return labels, append(start, int32(len(labels)))
}

func (s *splitter) makeRoom(f *netlist.Frontier) {
	widest := 0
	for _, n := range f.States {
		widest = max(widest, n)
	}
	for len(s.two) < widest*s.cells {
		s.one = append(s.one, math.Inf(1))
		s.two = append(s.two, math.Inf(1))
		s.from = append(s.from, 0)
	}
	for len(s.trace) < len(f.Order) {
		s.trace = append(s.trace, nil)
	}
}
