package partition

import (
	"context"
	"math"
)

// walk returns the pairs of loads, both within the limit, at the end;
// none where the context ends.
func (s *splitter) walk(ctx context.Context, f *frontier, one, two []float64, freeOne, freeTwo bool, limit float64) [][2]float64 {
	s.makeRoom(f)
	labels, start := [][2]float64{{}}, []int32{0, 1}
	scale := float64(s.cells) / limit * (1 - 1e-12)
	for i, v := range f.order {
		if ctx.Err() != nil {
			return nil
		}
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
		s.work += 200*len(f.arcs[i]) + 10*len(labels) + s.cells*f.states[i]
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
