package chaintime_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimeClocks: if devices wait for the host, the step is not a sum over units.
// The bound is still valid, and mostly equals the shortest step of all maps.
func TestTimeClocks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 32))
	var solved, proved, shortest, latencies int
	for i := range randomproblem.Samples(230) {
		p := randomproblem.Timed(t, rng)
		if len(p.Graph.Units) > 6 && len(p.Topology.Devices) > 3 {
			continue // exhaustive search takes too long
		}
		p.Objective = planner.Time
		if p.Costs.Workload.Mode == costmodel.Infer && i%2 == 0 {
			p.Objective = planner.Latency
			latencies++
		}
		p.Costs.Workload.MicroBatches = 1 + rng.Int64N(3)
		for d := range p.Topology.Devices {
			dev := &p.Topology.Devices[d]
			dev.IssueSeconds, dev.BackwardIssueSeconds = float64(1+i%5)/2, float64(1+i%3)/2
		}
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		if err != nil {
			continue // TestTimeRandom has these
		}
		best := exhaustive.Point{Seconds: math.Inf(1)}
		for _, pt := range exhaustive.Points(&p, !randomproblem.Uniform(p.Topology)) {
			if pt.Seconds < best.Seconds*(1-1e-9) || pt.Seconds <= best.Seconds*(1+1e-9) && pt.Share < best.Share {
				best = pt
			}
		}
		if sol.Value < best.Seconds*(1-1e-9) || sol.LowerBound > best.Seconds*(1+1e-9) {
			t.Fatalf("%d: %v takes %v s, at least %v; %v takes %v", i, sol.Map, sol.Value, sol.LowerBound, best.Map, best.Seconds)
		}
		if sol.Status == planner.Optimal {
			proved++
			if !randomproblem.Close(sol.Value, best.Seconds) || sol.EvenProved && !randomproblem.Close(sol.LargestShare, best.Share) {
				t.Fatalf("%d: %v takes %v s at %v, proved; %v takes %v at %v", i, sol.Map, sol.Value, sol.LargestShare, best.Map, best.Seconds, best.Share)
			}
		}
		if randomproblem.Close(sol.Value, best.Seconds) {
			shortest++
		}
		solved++
	}
	t.Logf("%d solved, %d the shortest, %d proved; %d drawn for the latency", solved, shortest, proved, latencies)
	if latencies < 16 || solved < 65 || shortest < 95*solved/100 || proved < 80*solved/100 {
		t.Errorf("%d solved, %d the shortest, %d proved", solved, shortest, proved)
	}
}
