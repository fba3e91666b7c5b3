package stagetime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/stagetime"
)

// TestBalanced: an answer of stages with about equal work is close to the best.
func TestBalanced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model    string
		schedule costmodel.ScheduleKind
		within   float64 // of the best step found
	}{
		{"llama-3.2-1b", costmodel.OneFOneB, 1.1},
		{"qwen2.5-3b", costmodel.GPipe, 1.1},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			p := randomproblem.OnH200(t, c.model, costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 8, Strategy: costmodel.Pipeline, Schedule: c.schedule, World: 4}, 4)
			in := randomproblem.Instance(t, &p)
			searched := fixtures.Must(stagetime.Method{}.Solve(t.Context(), in, instance.Limits{}, nil))(t)
			rough := fixtures.Must(stagetime.Balanced(t.Context(), in))(t)
			randomproblem.Rough(t, in, rough, searched, c.within)
		})
	}
}
