package planner_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestFrontRandom compares the front with exhaustive search.
func TestFrontRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(17, 18))
	var fronts, longest int
	for i := range randomproblem.Samples(170) {
		p := randomproblem.Timed(t, rng)
		if len(p.Graph.Units) > 6 && len(p.Topology.Devices) > 3 {
			continue // exhaustive search takes too long
		}
		f, err := planner.SolveFront(t.Context(), p, planner.Settings{})
		var constraint *planner.ConstraintError
		if errors.As(err, &constraint) {
			continue
		}
		want := nondominated(exhaustive.Points(&p, !randomproblem.Uniform(p.Topology)))
		slices.SortFunc(want, func(a, b exhaustive.Point) int { return cmp.Compare(a.Seconds, b.Seconds) })
		if err != nil {
			if len(want) > 0 {
				t.Fatalf("%d: %v, but %v fits", i, err, want[0])
			}
			continue
		}
		if !f.Complete || len(f.Points) != len(want) {
			t.Fatalf("%d: %d points (complete %t), brute force has %d", i, len(f.Points), f.Complete, len(want))
		}
		for j, pt := range f.Points {
			if !randomproblem.Close(pt.Value, want[j].Seconds) || !randomproblem.Close(pt.LargestShare, want[j].Share) {
				t.Fatalf("%d: point %d is %v s at %v, by brute force %v s at %v", i, j, pt.Value, pt.LargestShare, want[j].Seconds, want[j].Share)
			}
		}
		fronts++
		longest = max(longest, len(want))
	}
	if fronts < 40 || longest < 4 {
		t.Errorf("%d fronts, the longest of %d points: the draw is one-sided", fronts, longest)
	}
}

// nondominated returns the points that no other dominates.
func nondominated(points []exhaustive.Point) (out []exhaustive.Point) {
	for _, point := range points {
		keep := true
		for _, b := range points {
			if dominates(b, point) {
				keep = false
				break
			}
		}
		for _, b := range out {
			if keep && randomproblem.Close(point.Seconds, b.Seconds) && randomproblem.Close(point.Share, b.Share) {
				keep = false
			}
		}
		if keep {
			out = append(out, point)
		}
	}
	return out
}

// dominates reports that a point is better in one figure, and at least as good in both.
func dominates(one, other exhaustive.Point) bool {
	const more, less = 1 + 1e-9, 1 - 1e-9
	worse := one.Seconds > other.Seconds*more || one.Share > other.Share*more
	return !worse && (one.Seconds < other.Seconds*less || one.Share < other.Share*less)
}
