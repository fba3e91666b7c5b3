package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestSmallest: each change that is told makes the problem fit when it is
// made, and those that a user would try first are among them.
func TestSmallest(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 4, training(2))
	p.Workload.Strategy, p.Workload.Runtime = costmodel.DDP, costmodel.Torch
	if strategy.Best(strategy.Rows(t.Context(), p)) != nil {
		t.Fatal("DDP fits: nothing is tested")
	}
	changes := strategy.Smallest(t.Context(), p)
	for _, want := range []string{"--recompute full", "--batch ", "--lora-rank 16", "--strategy "} {
		if !slices.ContainsFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(c.What, want) }) {
			t.Errorf("no %q among %q", want, whats(changes))
		}
	}
	for _, c := range changes {
		s := resolve(t, p, c.Row.Workload, len(c.Row.Peaks()))
		if s.Value > 1 || !c.Row.Fits() {
			t.Errorf("%s: a share of %.3f", c.What, s.Value)
		}
	}
}

// TestSmallestTogether: where no change is enough, several are, and none of
// them too many.
func TestSmallestTogether(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 2, training(4))
	p.Workload.Strategy = costmodel.DeviceMap
	changes := strategy.Smallest(t.Context(), p)
	i := slices.IndexFunc(changes, func(c strategy.Change) bool { return strings.Count(c.What, "--") > 2 })
	if i < 0 {
		t.Fatalf("no changes together: %q", whats(changes))
	}
	if !changes[i].Row.Fits() {
		t.Errorf("%s does not fit", changes[i].What)
	}
	if more := changes[len(changes)-1]; !strings.HasPrefix(more.What, "--gpus ") || !more.Row.Fits() {
		t.Errorf("the last change is %q", more.What)
	}
}

// TestMoreGPUs: one fewer than the least is not enough.
func TestMoreGPUs(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 1, training(4))
	p.Workload.Strategy = costmodel.FSDP
	changes := strategy.Smallest(t.Context(), p)
	last := changes[len(changes)-1]
	n := len(last.Row.Peaks())
	if !strings.HasPrefix(last.What, "--gpus ") || n < 2 {
		t.Fatalf("the last change is %q", last.What)
	}
	fewer := problem(t, "llama-3.1-8b", "h100-80gb", n-1, p.Workload)
	if strategy.Best(strategy.Rows(t.Context(), fewer)) != nil {
		t.Errorf("%d GPUs are told, and %d are enough", n, n-1)
	}
}

// TestTried: nothing is told that does not lower the largest share.
func TestTried(t *testing.T) {
	p := problem(t, "qwen2.5-3b", "h100-80gb", 4, training(4))
	p.Workload.Strategy = costmodel.DeviceMap
	rows := strategy.Rows(t.Context(), p)
	value := rows[0].Solution.Value
	changes := strategy.Tried(t.Context(), p, value)
	if len(changes) < 3 {
		t.Errorf("only %q", whats(changes))
	}
	for _, c := range changes {
		if c.Row.Solution.Value >= value || c.Row.Resolved.LoRARank > 0 {
			t.Errorf("%s: %.3f of %.3f", c.What, c.Row.Solution.Value, value)
		}
	}
}

func whats(changes []strategy.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.What)
	}
	return out
}

// resolve places a workload as devmap plan does, on n GPUs like the first.
func resolve(t *testing.T, p *strategy.Problem, w costmodel.Workload, n int) *planner.Solution {
	t.Helper()
	if w.Strategy != costmodel.DeviceMap {
		w.World = int64(n)
	}
	w, err := estimate.Resolve(p.Graph, w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(p.Graph, w)
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{Devices: slices.Repeat(p.Topology.Devices[:1], n)}
	s, err := planner.Solve(t.Context(), planner.Problem{Graph: p.Graph, Costs: table, Topology: topo}, planner.Settings{})
	if err != nil {
		t.Fatalf("%s: %v", w.Strategy, err)
	}
	return s
}
