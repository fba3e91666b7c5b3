package stagetime_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/stagetime"
)

// TestStep: for any cuts, the search's sums give the step that steptime computes for the map. There
// is no step if a link is missing.
func TestStep(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	simulated, apart := 0, 0
	for simulated < randomproblem.Samples(3000) {
		problem, err := randomproblem.Pipeline(rng)
		if err != nil || problem.Costs.Workload.Schedule == costmodel.Interleaved {
			continue
		}
		problem.Pins = nil
		if rng.IntN(2) == 0 {
			randomproblem.Hosted(rng, &problem)
		}
		in := randomproblem.Instance(t, &problem)
		items, err := in.Items()
		if err != nil {
			continue // no pipeline of this form
		}
		exhaustive.Cuts(items.Count(), len(problem.Topology.Devices), nil, func(cuts []int) {
			got, placement, err := stagetime.Step(in, cuts)
			if err != nil {
				t.Fatal(err)
			}
			simulated++
			if math.IsInf(got, 1) {
				apart++
			} else if want := *devicemap.StepSeconds(problem.Costs, problem.Topology, placement); !randomproblem.Close(got, want) {
				t.Fatalf("%v on %+v: %v s by sums, %v s", placement, problem.Topology, got, want)
			}
		})
	}
	if apart == 0 || apart == simulated {
		t.Errorf("of %d cuts %d miss a link", simulated, apart)
	}
}
