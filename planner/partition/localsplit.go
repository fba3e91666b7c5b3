package partition

import (
	"context"
	"math"
)

// splitter divides two devices' items between them anew, the best way that
// cells of load can tell apart: a walk along the frontier where each label is
// the two loads so far.
type splitter struct {
	*netlist
	order []int32 // of all items, thin
	used  []bool
	cells int
	// one is the first device's load in each cell, two the second's.
	one, two []float64
	from     []int32
	trace    [][]int32
}

func newSplitter(l *netlist, cells int) *splitter {
	s := &splitter{netlist: l, cells: cells, used: make([]bool, len(l.wires))}
	for w := range s.used {
		s.used[w] = true
	}
	s.order = l.thinOrder(s.used)
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
	f := s.layOut(ctx, items, s.used, splitStates)
	limit := max(a.load[d], a.load[e]) * (1 - 1e-9)
	if f == nil || limit <= 0 {
		return nil, nil
	}
	labels := s.walk(f, s.time[a.kind[d]], s.time[a.kind[e]], a.free[a.kind[d]], a.free[a.kind[e]], limit)
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

// walk returns the pairs of loads, both within the limit, at the end.
func (s *splitter) walk(f *frontier, one, two []float64, freeOne, freeTwo bool, limit float64) [][2]float64 {
	s.makeRoom(f)
	labels, start := [][2]float64{{}}, []int32{0, 1}
	scale := float64(s.cells) / limit * (1 - 1e-12)
	for i, v := range f.order {
		for state, arcs := range f.arcs[i] {
			for choice, a := range arcs {
				x, y := a.in, a.out
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
				base := int(a.to) * s.cells
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
		labels, start = s.collect(i, f.states[i], labels, start)
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

func (s *splitter) makeRoom(f *frontier) {
	widest := 0
	for _, n := range f.states {
		widest = max(widest, n)
	}
	for len(s.two) < widest*s.cells {
		s.one = append(s.one, math.Inf(1))
		s.two = append(s.two, math.Inf(1))
		s.from = append(s.from, 0)
	}
	for len(s.trace) < len(f.order) {
		s.trace = append(s.trace, nil)
	}
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
