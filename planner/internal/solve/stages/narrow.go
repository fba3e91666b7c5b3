package stages

import (
	"context"
	"fmt"
	"math"
)

// first looks for a pipeline of any time where there is none yet.
func (s *solver) first(ctx context.Context, in *search) {
	if s.Stage == nil {
		if q := in.ask(ctx, math.Inf(1), s.p.Devices); q.reached() {
			s.offer(q.pipeline())
		}
	}
}

// narrow halves the distance between the bound and the best pipeline until
// they meet, or until the family has no better one. Once they are near, it
// asks just below the best: most often that is the last question.
func (s *solver) narrow(ctx context.Context, in *search) {
	s.from = s.LowerBound
	limit, asked := s.from, false
	for s.Stage != nil && s.from < s.Value*(1-precision) {
		q := in.ask(ctx, limit, s.p.Devices)
		switch {
		case q.stopped:
			return
		case q.reached():
			before := s.Value
			s.offer(q.pipeline())
			if s.Value == before { // a knapsack was left open
				s.from = max(s.from, limit)
			}
		default:
			s.from = max(limit, q.next)
			if in.f.whole {
				s.raise(s.from, "search: no pipeline has its slowest stage below it")
			}
		}
		limit = s.from + (s.Value-s.from)/2
		if s.Value-s.from < near*s.Value && !asked {
			limit, asked = s.Value*(1-precision), true
		}
	}
}

// near is a hundredth: see narrow.
const near = 0.01

// offer keeps a pipeline if it is the best.
func (s *solver) offer(stage, choice []int) {
	loads, largest, err := s.p.Score(stage, choice)
	if err != nil || largest >= s.Value {
		return
	}
	s.Stage, s.Choice, s.Loads, s.Value = stage, choice, loads, largest
	s.progress()
}

// raise keeps a bound if it is the highest.
func (s *solver) raise(bound float64, why string) {
	if bound > s.LowerBound {
		s.LowerBound, s.Bound = bound, why
		s.progress()
	}
}

func (s *solver) progress() {
	if s.set.Progress != nil {
		s.set.Progress(s.Value, s.LowerBound)
	}
}

// bounds are those that need no search.
func (s *solver) bounds() {
	total := 0.0
	v := newView(s.p, 1)
	for i := range s.p.Nodes {
		o := &v.nodes[i]
		t, _ := o.fastest()
		total += t
		c := 0
		for c < len(o.choice)-1 && o.memory[c] > s.p.Capacity*(1+rounding) {
			c++
		}
		s.raise(o.time[c], fmt.Sprintf("largest node: %q takes it alone", s.p.Nodes[i].Name))
	}
	s.raise(total/float64(s.p.Devices)*(1-precision/10), fmt.Sprintf("average: the fastest choices of all nodes over %d devices", s.p.Devices))
}
