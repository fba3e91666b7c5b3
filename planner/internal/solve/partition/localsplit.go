package partition

import "context"

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
	// work counts what was done, in steps of about a nanosecond: it ends the
	// search where a clock would make it differ from run to run.
	work int
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, l *netlist, cells int) *splitter {
	s := &splitter{netlist: l, cells: cells, used: make([]bool, len(l.wires))}
	for w := range s.used {
		s.used[w] = true
	}
	if s.order = l.thinOrder(ctx, s.used); s.order == nil {
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
	f := s.layOut(ctx, items, s.used, splitStates)
	limit := max(a.load[d], a.load[e]) * (1 - 1e-9)
	if f == nil || limit < leastLoad {
		return nil, nil
	}
	labels := s.walk(ctx, f, s.time[a.kind[d]], s.time[a.kind[e]], a.free[a.kind[d]], a.free[a.kind[e]], limit)
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
