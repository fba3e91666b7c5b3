package planner_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/brute"
)

// timedProblem is a random problem with random times: units of integer
// FLOPs, so that ties are common, on devices and links that differ half of
// the time.
func timedProblem(t *testing.T, rng *rand.Rand) planner.Problem {
	t.Helper()
	for {
		p := randomProblem(t, rng)
		if p.Costs.Workload.Mode == costmodel.Load {
			continue
		}
		if rng.IntN(2) == 0 {
			w, err := estimate.Resolve(p.Graph, costmodel.Workload{Mode: costmodel.Infer, Batch: 1, Seq: 1, Precision: costmodel.BF16True})
			if err != nil {
				t.Fatal(err)
			}
			if p.Costs, err = estimate.Table(p.Graph, w); err != nil {
				t.Fatal(err)
			}
		}
		p.Costs.OutputBytes = rng.Int64N(2) * rng.Int64N(60)
		for u := range p.Costs.Units {
			w := &p.Costs.Units[u].Work
			w.Forward.Products, w.Backward.Products = float64(rng.IntN(6)), float64(rng.IntN(9))
			w.Output = rng.Int64N(4)
			if p.Costs.Workload.Mode == costmodel.Train {
				w.Update = float64(rng.IntN(5))
			}
		}
		topo := p.Topology
		for d := range topo.Devices {
			dev := &topo.Devices[d]
			dev.FLOPS, dev.BytesPerSecond, dev.LinkBytesPerSecond = 1, 1, 1
			if *dev != topo.Devices[0] {
				dev.FLOPS, dev.BytesPerSecond, dev.LinkBytesPerSecond = float64(1+rng.IntN(3)), float64(1+rng.IntN(2)), 1/float64(1+rng.IntN(2))
			}
		}
		if k := len(topo.Devices); k > 1 && rng.IntN(4) == 0 {
			for a := range k {
				for b := range a {
					if rng.IntN(4) > 0 {
						topo.Links = append(topo.Links, costmodel.Link{From: b, To: a, BytesPerSecond: float64(1 + rng.IntN(2)), LatencySeconds: float64(rng.IntN(2))})
					}
				}
			}
		}
		return p
	}
}

// alike reports that no order of the devices is better than another.
func alike(topo *costmodel.Topology) bool {
	for a := range topo.Devices {
		if topo.Devices[a] != topo.Devices[0] {
			return false
		}
		for b := range topo.Devices {
			if a != b && (topo.Linked(a, b) != topo.Linked(0, 1) || topo.SendSeconds(a, b, 0) != topo.SendSeconds(0, 1, 0) || topo.SendSeconds(a, b, 1) != topo.SendSeconds(0, 1, 1)) {
				return false
			}
		}
	}
	return true
}

// TestTimeRandom holds the shortest step, and with it the smallest largest
// share, to brute force over every contiguous map: in device order where the
// devices are alike, in any order where they are not.
func TestTimeRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	var solved, infeasible, unequal, ordered int
	for i := range 700 {
		p := timedProblem(t, rng)
		if len(p.Graph.Units) > 6 && len(p.Topology.Devices) > 3 {
			continue // brute force takes too long
		}
		p.Objective = planner.Time
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		var pattern *planner.PatternError
		var conflict *planner.ConflictError
		if errors.As(err, &pattern) || errors.As(err, &conflict) {
			continue
		}
		points := brute.Points(&p, !alike(p.Topology))
		best := brute.Point{Seconds: math.Inf(1)}
		for _, pt := range points {
			if pt.Seconds < best.Seconds*(1-1e-9) || pt.Seconds <= best.Seconds*(1+1e-9) && pt.Share < best.Share {
				best = pt
			}
		}
		if len(points) == 0 {
			if err == nil {
				t.Fatalf("%d: %v, but nothing fits", i, sol.Map)
			}
			infeasible++
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v, but %v fits in %v s", i, err, best.Map, best.Seconds)
		}
		if !close9(sol.Value, best.Seconds) || !close9(sol.LargestShare(), best.Share) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value {
			t.Fatalf("%d: %v takes %v s at %v (%s, bound %v); %v takes %v s at %v", i, sol.Map, sol.Value, sol.LargestShare(), sol.Status, sol.LowerBound, best.Map, best.Seconds, best.Share)
		}
		solved++
		if !alike(p.Topology) {
			unequal++
			for u := 1; u < len(sol.Map); u++ {
				if sol.Map[u] < sol.Map[u-1] {
					ordered++
					break
				}
			}
		}
	}
	t.Logf("%d solved, %d infeasible, %d with devices that differ, %d of them out of order", solved, infeasible, unequal, ordered)
	if solved < 250 || infeasible < 20 || unequal < 100 || ordered < 25 {
		t.Errorf("%d solved, %d infeasible, %d with devices that differ, %d of them out of order: the draw is one-sided", solved, infeasible, unequal, ordered)
	}
}

func close9(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1e-300, math.Abs(a)) }

// TestFrontRandom holds the front to brute force.
func TestFrontRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(17, 18))
	var fronts, longest int
	for i := range 500 {
		p := timedProblem(t, rng)
		if len(p.Graph.Units) > 6 && len(p.Topology.Devices) > 3 {
			continue // brute force takes too long
		}
		f, err := planner.SolveFront(t.Context(), p, planner.Settings{})
		var pattern *planner.PatternError
		var conflict *planner.ConflictError
		if errors.As(err, &pattern) || errors.As(err, &conflict) {
			continue
		}
		want := brute.Front(brute.Points(&p, !alike(p.Topology)))
		slices.SortFunc(want, func(a, b brute.Point) int { return cmp.Compare(a.Seconds, b.Seconds) })
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
			if !close9(pt.Value, want[j].Seconds) || !close9(pt.LargestShare(), want[j].Share) {
				t.Fatalf("%d: point %d is %v s at %v, by brute force %v s at %v", i, j, pt.Value, pt.LargestShare(), want[j].Seconds, want[j].Share)
			}
		}
		fronts++
		longest = max(longest, len(want))
	}
	if fronts < 120 || longest < 4 {
		t.Errorf("%d fronts, the longest of %d points: the draw is one-sided", fronts, longest)
	}
}
