package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// small returns a decoder of so many blocks, built from its dimensions.
func small(t *testing.T, blocks int) *modelgraph.Graph {
	t.Helper()
	b := modelgraph.Builder{Name: "small", DType: modelgraph.BF16}
	b.Add("embed", modelgraph.Embedding{Vocab: 32000, Dim: 512})
	b.Decoder("blocks", blocks, modelgraph.RMSNorm, modelgraph.Attention{Dim: 512, Heads: 8, KVHeads: 4, HeadDim: 64, Rope: true},
		modelgraph.MLP{Dim: 512, Hidden: 2048, Gated: true, Activation: "silu"})
	b.Add("norm", modelgraph.Norm{Dim: 512})
	b.Add("head", modelgraph.Head{Dim: 512, Vocab: 32000})
	g := fixtures.Must(b.Build())(t)
	return g
}

// gpus returns so many GPUs of the catalogue, by name only.
func gpus(n int) *costmodel.Topology {
	topology := &costmodel.Topology{}
	for range n {
		topology.Devices = append(topology.Devices, costmodel.Device{Name: "rtx-4090"})
	}
	return topology
}

// TestPlanIsSolve: one call of Plan gives the result of its steps by hand, and does not change its
// arguments.
func TestPlanIsSolve(t *testing.T) {
	t.Parallel()
	g, open := small(t, 12), costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.AdamW}
	given := gpus(3)
	got := fixtures.Must(planner.Plan(t.Context(), g, open, given))(t)
	if given.Devices[0].CapacityBytes != 0 {
		t.Error("the caller's topology is changed")
	}
	resolved := fixtures.Must(estimate.Resolve(g, open))(t)
	costs := fixtures.Must(estimate.Table(g, resolved))(t)
	gpu := fixtures.Must(catalogue.Find("rtx-4090"))(t)
	device := gpu.Device(costmodel.Train)
	want, err := planner.Solve(t.Context(), planner.Problem{
		Graph: g, Costs: costs, Topology: &costmodel.Topology{Devices: []costmodel.Device{device, device, device}},
	}, planner.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Value != want.Value || !slices.Equal(got.Map, want.Map) || got.Status != planner.Optimal {
		t.Errorf("%v of %g (%s), by hand %v of %g", got.Map, got.Value, got.Status, want.Map, want.Value)
	}
}

// TestProblem: a problem of a workload takes pins, an objective and settings. A pipeline and
// replicas get their number of GPUs from the topology.
func TestProblem(t *testing.T) {
	t.Parallel()
	g := small(t, 6)
	work := costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.AdamW, Batch: 4}
	problem := planner.Problem{Graph: g, Workload: work, Topology: gpus(2), Pins: []devicemap.Pin{{Pattern: "embed", Device: 1}}}
	pinned, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil || pinned.Map[0] != 1 {
		t.Errorf("the embedding is not where it is pinned: %v (%v)", pinned, err)
	}
	problem.Pins, problem.Objective = nil, planner.Time
	timed, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil || timed.Objective != planner.Time {
		t.Errorf("%v (%v) is no plan for time", timed, err)
	}
	if seconds := devicemap.StepSeconds(timed.Costs, timed.Topology, timed.Map); seconds == nil || *seconds != timed.Value {
		t.Errorf("a step of %v s by what the plan was made for, of %v s by the plan", seconds, timed.Value)
	}
	reported := false
	problem.Objective = planner.Memory
	if _, err := planner.Solve(t.Context(), problem, planner.Settings{Progress: func(planner.Progress) { reported = true }}); err != nil || !reported {
		t.Errorf("progress is told: %t (%v)", reported, err)
	}
	work.Strategy, work.MicroBatches = costmodel.Pipeline, 4
	if piped, err := planner.Plan(t.Context(), g, work, gpus(2)); err != nil || piped.Map[0] == piped.Map[len(piped.Map)-1] {
		t.Errorf("a pipeline of two stages: %v (%v)", piped, err)
	}
	work.Strategy, work.MicroBatches = costmodel.DDP, 1
	if replicas, err := planner.Plan(t.Context(), g, work, gpus(2)); err != nil || len(replicas.Devices) != 2 {
		t.Errorf("two replicas: %v (%v)", replicas, err)
	}
}

// TestPlanDefaults: the defaults are those of the command: inference, and for training AdamW
// without recomputation.
func TestPlanDefaults(t *testing.T) {
	t.Parallel()
	g := small(t, 6)
	for _, c := range []struct{ open, full costmodel.Workload }{
		{costmodel.Workload{}, costmodel.Workload{Mode: costmodel.Infer, Batch: 1, Seq: 2048, Precision: costmodel.BF16True}},
		{costmodel.Workload{Mode: costmodel.Train}, costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone}},
	} {
		got := fixtures.Must(planner.Plan(t.Context(), g, c.open, gpus(2)))(t)
		want := fixtures.Must(planner.Plan(t.Context(), g, c.full, gpus(2)))(t)
		if got.Value != want.Value || !slices.Equal(got.Map, want.Map) {
			t.Errorf("%+v gives %v of %g, in full %v of %g", c.open, got.Map, got.Value, want.Map, want.Value)
		}
	}
}

// TestPlanRefuses: errors name the wrong argument.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	g, work := small(t, 2), costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.AdamW}
	unknown := gpus(2)
	unknown.Devices[1].Name = "rtx-4091"
	tiny := gpus(1)
	tiny.Devices[0].CapacityBytes = 1 << 20
	for _, c := range []struct {
		graph    *modelgraph.Graph
		work     costmodel.Workload
		topology *costmodel.Topology
		want     string
	}{
		{nil, work, gpus(1), "a plan needs a graph and a topology"},
		{g, work, nil, "a plan needs a graph and a topology"},
		{g, work, gpus(0), "devices: 0 devices"},
		{g, work, unknown, `GPU 1: unknown GPU "rtx-4091" (known: h100-80gb,`},
		{g, costmodel.Workload{Mode: costmodel.Train, Batch: 3, MicroBatches: 2}, gpus(1), "2 does not divide the batch of 3"},
		{g, work, tiny, "does not fit"},
		{g, costmodel.Workload{Mode: "dream"}, gpus(1), `mode: "dream" is unknown (known: infer, train, load, serve)`},
		{g, costmodel.Workload{Mode: costmodel.Train, Optimizer: "adam"}, gpus(1), `optimizer: "adam" is unknown (known: adamw,`},
		{g, costmodel.Workload{Strategy: "fsdp3"}, gpus(1), `strategy: "fsdp3" is unknown`},
		{g, costmodel.Workload{Strategy: costmodel.Auto}, gpus(1), "strategy: a plan has one strategy; strategy.Rows"},
		{g, costmodel.Workload{NewTokens: -1}, gpus(1), "new_tokens: -1 is not between 0 and 2^32"},
	} {
		_, err := planner.Plan(t.Context(), c.graph, c.work, c.topology)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	_, err := planner.Plan(t.Context(), g, work, tiny)
	var infeasible *planner.InfeasibleError
	if !errors.As(err, &infeasible) {
		t.Errorf("%v is no InfeasibleError", err)
	}
}
