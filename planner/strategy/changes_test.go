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

// TestSmallest: each reported change makes the problem fit, and the obvious changes are among them.
func TestSmallest(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 4, training(2))
	p.Workload.Strategy, p.Workload.Runtime = costmodel.DDP, "torch"
	if fits(t, p) {
		t.Fatal("DDP fits: nothing is tested")
	}
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	for _, want := range []string{"recompute=full", "batch=", "lora_rank=16", "strategy=", "offload=cpu strategy=zero3", "gpu="} {
		if !slices.ContainsFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(what(&c), want) }) {
			t.Errorf("no %q among %q", want, whats(changes))
		}
	}
	for _, c := range changes {
		s := resolve(t, p, c.Row.Workload, c.To.Topology)
		if s.Value > 1 || !c.Row.Fits {
			t.Errorf("%s: a share of %.3f", what(&c), s.Value)
		}
	}
}

// TestSmallestTogether: if no change is enough, several together are, and none is superfluous.
func TestSmallestTogether(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 2, training(4))
	p.Workload.Strategy = costmodel.DeviceMap
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	i := slices.IndexFunc(changes, func(c strategy.Change) bool { return len(c.Set) > 2 })
	if i < 0 {
		t.Fatalf("no changes together: %q", whats(changes))
	}
	if !changes[i].Row.Fits {
		t.Errorf("%s does not fit", what(&changes[i]))
	}
	if i := slices.IndexFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(what(&c), "gpus=") }); i < 0 || !changes[i].Row.Fits {
		t.Errorf("no more GPUs among %q", whats(changes))
	}
}

// TestSmallestSameResults: if every sufficient single change is less work, several changes with the
// same results are tried together, sequence parallelism among them.
func TestSmallestSameResults(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "a100-40gb", 4, training(4))
	work := &p.Workload
	work.Strategy, work.Runtime, work.TP, work.MicroBatches, work.Seq, work.Precision = costmodel.Pipeline, "megatron", 4, 4, 8192, costmodel.BF16Mixed
	if fits(t, p) {
		t.Fatal("it fits: nothing is tested")
	}
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	less := slices.ContainsFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(what(&c), "seq=") })
	if len(changes) == 0 || !less || !changes[0].Row.Fits || !strings.Contains(what(&changes[0]), "recompute=full") || !strings.Contains(what(&changes[0]), "sequence_parallel") {
		t.Errorf("%q", whats(changes))
	}
}

// TestSmallestDegrees: if stages of fixed degrees do not fit and no other change helps, open
// degrees are tried and reported.
func TestSmallestDegrees(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 8, training(8))
	p.Workload.Strategy, p.Workload.DP, p.Workload.TP, p.Workload.MicroBatches, p.Workload.Seq = costmodel.Pipeline, 2, 2, 8, 2048
	if fits(t, p) {
		t.Fatal("it fits: nothing is tested")
	}
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	i := slices.IndexFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(what(&c), "batch=16 dp=auto tp=auto") }) // the step has two batches of 8
	if i < 0 || !changes[i].Row.Fits || changes[i].Row.Resolved.DP != costmodel.AutoDegree {
		t.Errorf("no open degrees that fit among %q", whats(changes))
	}
}

// TestMoreGPUs: one fewer than the least is not enough.
func TestMoreGPUs(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 1, training(4))
	p.Workload.Strategy = costmodel.FSDP
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	i := slices.IndexFunc(changes, func(c strategy.Change) bool { return strings.HasPrefix(what(&c), "gpus=") })
	if i < 0 || len(changes[i].Row.Solution.Devices) < 2 {
		t.Fatalf("no more GPUs among %q", whats(changes))
	}
	n := len(changes[i].Row.Solution.Devices)
	fewer := problem(t, "llama-3.1-8b", "h100-80gb", n-1, p.Workload)
	if fits(t, fewer) {
		t.Errorf("%d GPUs are told, and %d are enough", n, n-1)
	}
}

// TestAlternatives: each lowers the largest share, or needs fewer GPUs.
func TestAlternatives(t *testing.T) {
	p := problem(t, "qwen2.5-3b", "h100-80gb", 4, training(4))
	p.Workload.Strategy = costmodel.DeviceMap
	rows := rowsOf(t, p)
	value := rows[0].Solution.Value
	fewer, changes := strategy.Alternatives(t.Context(), p, strategy.Options{}, value)
	for _, c := range fewer {
		if len(c.Row.Solution.Devices) >= 4 || c.Row.Solution.Value > value {
			t.Errorf("%s: %.3f of %.3f", what(&c), c.Row.Solution.Value, value)
		}
	}
	if len(changes) < 3 {
		t.Errorf("only %q", whats(changes))
	}
	for _, c := range changes {
		if c.Row.Solution.Value >= value || c.Row.Resolved.LoRARank > 0 {
			t.Errorf("%s: %.3f of %.3f", what(&c), c.Row.Solution.Value, value)
		}
	}
}

func whats(changes []strategy.Change) []string {
	var out []string
	for i := range changes {
		out = append(out, what(&changes[i]))
	}
	return out
}

// what is a change as text: "batch=4 strategy=ddp (a note) (without schedule)".
func what(c *strategy.Change) string {
	var words []string
	for _, s := range c.Set {
		words = append(words, s.String())
	}
	if len(c.Notes) > 0 {
		words = append(words, "("+strings.Join(c.Notes, ", ")+")")
	}
	if len(c.Without) > 0 {
		words = append(words, "(without "+strings.Join(c.Without, " ")+")")
	}
	return strings.Join(words, " ")
}

// fits reports that some strategy does.
func fits(t *testing.T, p planner.Problem) bool {
	t.Helper()
	rows := rowsOf(t, p)
	return rows[0].Fits
}

// resolve places a workload as devmap plan does.
func resolve(t *testing.T, p planner.Problem, w costmodel.Workload, topo *costmodel.Topology) *planner.Solution {
	t.Helper()
	if w.Strategy != costmodel.DeviceMap {
		w.World = int64(len(topo.Devices))
	}
	w, err := estimate.Resolve(p.Graph, w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(p.Graph, w)
	if err != nil {
		t.Fatal(err)
	}
	s, err := planner.Solve(t.Context(), planner.Problem{Graph: p.Graph, Costs: table, Topology: topo}, planner.Settings{})
	if err != nil {
		t.Fatalf("%s: %v", w.Strategy, err)
	}
	return s
}

// TestNoShorterImage: a model that reads no text has no length to shorten.
func TestNoShorterImage(t *testing.T) {
	p := problem(t, "vit-large", "h100-80gb", 2, costmodel.Workload{Mode: costmodel.Infer, Batch: 256, Strategy: costmodel.Pipeline, Runtime: "torch", Schedule: costmodel.OneFOneB})
	for i := range p.Topology.Devices {
		p.Topology.Devices[i].CapacityBytes = 4 << 30
	}
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	if len(changes) == 0 {
		t.Fatal("no change is reported: nothing is tested")
	}
	for i := range changes {
		if text := what(&changes[i]); strings.Contains(text, "seq=") {
			t.Errorf("%q, and the model reads no text", text)
		}
	}
}
