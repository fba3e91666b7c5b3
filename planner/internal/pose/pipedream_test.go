package pose

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// TestPipeDream holds the solver to PipeDream's straight pipelines
// (optimizer_graph_hierarchical.py --straight_pipeline, which reports 1e-5 s),
// and to a proof.
func TestPipeDream(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		name    string
		devices int
		time    float64 // s
	}{
		{"vgg16", 4, 0.21645},
		{"vgg16", 8, 0.15953},
		{"resnet50", 4, 0.11150},
		{"gnmt", 4, 0.02587},
	} {
		t.Run(fmt.Sprintf("%s on %d", want.name, want.devices), func(t *testing.T) {
			t.Parallel()
			file := "../../../fixtures/workloads/pipedream/" + want.name + ".graph.txt"
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Read[*benchfile.PipeDream](file, data)
			if err != nil {
				t.Fatal(err)
			}
			p := PipeDream(w, want.devices)
			s, err := stages.Solve(context.Background(), p, stages.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if _, largest, err := p.Score(s.Stage, s.Choice); err != nil || largest != s.Value {
				t.Errorf("scored %v (%v), said %v", largest, err, s.Value)
			}
			if s.Value > want.time+1e-5 || !s.Optimal() {
				t.Errorf("slowest stage %v s (optimal %v), want at most %v", s.Value, s.Optimal(), want.time)
			}
		})
	}
}
