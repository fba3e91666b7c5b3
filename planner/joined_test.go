package planner_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestJoinedFollow: InternVL's projector is with its tower and embedding on the first GPU. A pin of
// the projector to that GPU changes nothing, and a map that separates them is faulty.
func TestJoinedFollow(t *testing.T) {
	config := fixtures.Must(os.ReadFile("../modelgraph/hf/testdata/internvl2_5-26b.json"))(t)
	graph := fixtures.Must(hf.FromConfig("config.json", config))(t)
	problem := randomproblem.OnH200(t, "gpt2", costmodel.Workload{Mode: costmodel.Infer}, 4)
	problem.Graph, problem.Costs = graph, randomproblem.Table(t, graph, costmodel.Workload{Mode: costmodel.Infer})
	free := fixtures.Must(planner.Solve(t.Context(), problem, planner.Settings{}))(t)
	flat := free.Map.Flatten(graph)
	first := []string{"vision_model", "language_model.model.tok_embeddings", "mlp1.0", "mlp1.1", "mlp1.3"}
	for i := range flat {
		if flat[i].Device != 0 && slices.Contains(first, flat[i].Key) {
			t.Errorf("%s is on %v", flat[i].Key, flat[i].Device)
		}
		if flat[i].Key == "mlp1.3" {
			flat[i].Device = 3
		}
	}
	problem.Pins = []instance.Pin{{Pattern: "mlp1*", Device: 0}}
	pinned, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil || pinned.LargestShare != free.LargestShare {
		t.Errorf("pinned: %v, free: %v (%v)", pinned.LargestShare, free.LargestShare, err)
	}
	report := devicemap.Check(graph, problem.Costs, problem.Topology, flat, nil)
	if len(report.Faults) != 1 || report.Faults[0].Kind != "ties-apart" || !strings.Contains(report.Faults[0].Message.String(), "moves none of them") {
		t.Errorf("%+v", report.Faults)
	}
}
