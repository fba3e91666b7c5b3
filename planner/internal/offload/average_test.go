package offload_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/offload"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestLeavingAverage: no map has a smaller largest share than the average of the bytes that must
// stay, for any offloaded units.
func TestLeavingAverage(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	tried, near := 0, 0
	for i := range 1200 {
		p := randomproblem.Problem(t, rng)
		p.Pins, p.Together = nil, nil
		if i%3 == 0 && len(p.Graph.Units) > 2 { // pinned units stay
			p.Pins = []devicemap.Pin{{Pattern: p.Graph.Units[1].Name, Device: 0}, {Pattern: p.Graph.Units[2].Name, Device: 0}}
		}
		if len(p.Graph.TiedUnits()) > 0 || math.Pow(float64(1+len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue // tied units leave together, which this test does not try
		}
		w, err := estimate.Resolve(p.Graph, costmodel.Workload{Mode: randomproblem.Pick(rng, costmodel.Infer, costmodel.Load), Batch: 1, Seq: 1, Precision: costmodel.BF16True})
		if err != nil {
			t.Fatal(err)
		}
		if p.Costs, err = estimate.Table(p.Graph, w); err != nil {
			t.Fatal(err)
		}
		average, err := offload.Average(randomproblem.Instance(t, &p))
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		randomproblem.EveryMap(&p, devicemap.CPU, func(m devicemap.Map) {
			if !slices.Contains(m, 0) {
				return // offloaded units run on the first device, which needs memory for them
			}
			if len(p.Pins) > 0 && slices.Contains(m[1:3], devicemap.CPU) {
				return
			}
			best = min(best, randomproblem.LargestShare(&p, m))
		})
		if average > best*(1+1e-12) {
			t.Fatalf("%d: what must stay is said to be a share of %v, and a map has %v", i, average, best)
		}
		tried++
		if average > 0.5*best {
			near++
		}
	}
	if tried < 300 || near < 10 {
		t.Errorf("%d problems, in %d the bound is half of the best share", tried, near)
	}
}
