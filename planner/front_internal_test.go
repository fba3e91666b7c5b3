package planner

import (
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// TestFrontTies: each new point has smaller shares than those before it. It removes earlier points
// whose step is as long or longer; points with a shorter step stay. The front is complete if all
// points, also the removed ones, are proved.
func TestFrontTies(t *testing.T) {
	point := func(step float64, status certificate.Status, even bool) *Solution {
		return &Solution{Certificate: certificate.Certificate{Value: step, LowerBound: step, Status: status}, EvenProved: even}
	}
	for _, c := range []struct {
		name     string
		points   []*Solution
		want     []float64
		complete bool
	}{
		{"longer and longer", []*Solution{point(1, Optimal, true), point(2, Optimal, true), point(4, Optimal, true)}, []float64{1, 2, 4}, true},
		{"a tie", []*Solution{point(1, Optimal, true), point(2, LimitReached, true), point(2, Optimal, true)}, []float64{1, 2}, false},
		{"ties of several", []*Solution{point(2, Optimal, true), point(3, Optimal, true), point(3, Optimal, true), point(3, Optimal, true)}, []float64{2, 3}, true},
		{"a tie with the first", []*Solution{point(2, Optimal, false), point(2, Optimal, true)}, []float64{2}, false},
		{"shorter than two before", []*Solution{point(1, Optimal, true), point(3, LimitReached, false), point(4, Feasible, false), point(2, Optimal, true)}, []float64{1, 2}, false},
		{"not even", []*Solution{point(1, Optimal, true), point(2, Optimal, false)}, []float64{1, 2}, false},
		{"not proved", []*Solution{point(1, Optimal, true), point(2, Feasible, true)}, []float64{1, 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &Front{Points: c.points[:1:1], Complete: c.points[0].proved()}
			for _, p := range c.points[1:] {
				f.add(p)
			}
			var got []float64
			for i, p := range f.Points {
				got = append(got, p.Value)
				if last := c.points[len(c.points)-1]; i == len(f.Points)-1 && p != last {
					t.Errorf("the last to come, of %v s, is not the last point", last.Value)
				}
			}
			if len(got) != len(c.want) || f.Complete != c.complete {
				t.Fatalf("%v (complete %t), want %v (%t)", got, f.Complete, c.want, c.complete)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}
