package graph_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// TestStep: loads are multiples of the step, which is found for decimals and not
// for what has no last digit.
func TestStep(t *testing.T) {
	t.Parallel()
	for _, sample := range []struct{ time, transfer, step float64 }{
		{12, 18, 6}, {0.35, 1.4, 0.35}, {0.007, 123.005, 0.001}, {math.Pi, 1, 0}, {0, 0, 0}, {1e-9, 1, 1e-9}, {1e-9, 1e8, 0}, {math.Inf(1), 3, 3},
	} {
		problem := &graph.Problem{Nodes: []graph.Node{{Time: []float64{sample.time}, Transfer: sample.transfer}}}
		if step := problem.Step(); math.Abs(step-sample.step) > 1e-12*sample.step {
			t.Errorf("the step of %v and %v is %v, not %v", sample.time, sample.transfer, step, sample.step)
		}
	}
}

// TestRaiseToStep: a bound a little below the least load of whole numbers is
// raised to it, and never above.
func TestRaiseToStep(t *testing.T) {
	t.Parallel()
	met := 0
	for seed := range uint64(150) {
		problem := whole(rand.New(rand.NewPCG(seed, 51)))
		least := least(problem)
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		incumbent := graph.NewIncumbent(problem, graph.Settings{})
		for _, below := range []float64{0, 1e-8, 0.3, 0.999} {
			incumbent.Answer.LowerBound = 0
			incumbent.Raise(least-below*incumbent.Step, "test")
			if incumbent.Answer.LowerBound > least*(1+1e-9) {
				t.Errorf("seed %d: %v raised to %v where %v is possible", seed, least-below*incumbent.Step, incumbent.Answer.LowerBound, least)
			}
			if incumbent.Answer.LowerBound >= least*(1-1e-9) {
				met++
			}
		}
	}
	if met < 350 {
		t.Errorf("%d bounds met the least", met)
	}
}
