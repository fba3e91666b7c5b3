package planner_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestRough: the answers of problems too large for the search for the shortest
// step are maps that fit (timedSolution checks), whose bound is none above what
// the search finds, and whose step is near it.
func TestRough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model   string
		w       costmodel.Workload
		gpus    int
		devices int
		within  float64 // of the step searched: stages are cut by work alone, and fewer devices share the update
	}{
		{"llama-3.2-1b", costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 8, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, World: 4}, 4, 0, 1.1},
		{"qwen2.5-3b", costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 8, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, World: 4}, 4, 0, 1.1},
		{"llama-3.2-1b", costmodel.Workload{Mode: costmodel.Train, Batch: 2}, 4, 2, 1.05},
		{"qwen2.5-3b", costmodel.Workload{Mode: costmodel.Infer, Batch: 1}, 4, 3, 1.01},
	} {
		p := onH200(t, c.model, c.w, c.gpus)
		rough, searched, err := p.Rough(t.Context(), c.devices)
		if err != nil {
			t.Fatal(c.model, err)
		}
		if rough.LowerBound > searched.Value*(1+1e-9) || rough.LowerBound <= 0 || rough.Value < searched.LowerBound*(1-1e-9) || rough.Value > c.within*searched.Value {
			t.Errorf("%s, %s: step %v (bound %v), the search %v (bound %v)", c.model, c.w.Strategy, rough.Value, rough.LowerBound, searched.Value, searched.LowerBound)
		}
	}
}
