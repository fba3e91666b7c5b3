package chaintime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestFewer: an answer on the first devices alone is close to the best.
func TestFewer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model   string
		w       costmodel.Workload
		devices int
		within  float64 // of the best step found: fewer devices share the update
	}{
		{"llama-3.2-1b", costmodel.Workload{Mode: costmodel.Train, Batch: 2}, 2, 1.05},
		{"qwen2.5-3b", costmodel.Workload{Mode: costmodel.Infer, Batch: 1}, 3, 1.01},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			p := randomproblem.OnH200(t, c.model, c.w, 4)
			in := randomproblem.Instance(t, &p)
			searched := fixtures.Must(chaintime.Method{}.Solve(t.Context(), in, instance.Limits{}, nil))(t)
			rough := fixtures.Must(chaintime.OnFewer(t.Context(), in, c.devices))(t)
			randomproblem.Rough(t, in, rough, searched, c.within)
		})
	}
}
