package strategy_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// problem is a built-in model on n GPUs of the catalogue.
func problem(t *testing.T, model, gpu string, n int, w costmodel.Workload) planner.Problem {
	t.Helper()
	g := fixtures.Must(load.Model(model, load.Options{BuiltIn: fixtures.Models(), Env: func(string) string { return "" }}))(t)
	entry := fixtures.Must(catalogue.Find(gpu))(t)
	topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{entry.Device(w.Mode)}, n)}
	return planner.Problem{Graph: g, Workload: w, Topology: topo}
}

func training(batch int64) costmodel.Workload {
	return costmodel.Workload{Mode: costmodel.Train, Batch: batch, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone}
}

// rowsOf are the rows of a problem; none failed its check.
func rowsOf(t *testing.T, p planner.Problem) []strategy.Row {
	t.Helper()
	rows := fixtures.Must(strategy.Rows(t.Context(), p, strategy.Options{}))(t)
	return rows
}

// TestRows checks the strategies of the table and their order.
func TestRows(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 4, training(4))
	rows := rowsOf(t, p)
	seen := map[costmodel.Strategy]map[string]bool{}
	for i := range rows {
		w := &rows[i].Workload
		if seen[w.Strategy] == nil {
			seen[w.Strategy] = map[string]bool{}
		}
		seen[w.Strategy][w.Runtime] = true
	}
	for _, s := range costmodel.Strategies() {
		for _, r := range s.Traits().Runtimes {
			if asked := slices.Contains([]string{costmodel.Devmap, "jax", "megatron", "torchtitan"}, r); seen[s][r] == asked { // which must be given explicitly
				t.Errorf("%s under %s: a row is %t", s, r, seen[s][r])
			}
		}
	}
	own := training(4)
	own.Runtime = costmodel.Devmap
	for _, row := range rowsOf(t, problem(t, "llama-3.1-8b", "h100-80gb", 4, own)) {
		if row.Refused != nil || row.Workload.Runtime != costmodel.Devmap || row.StepSeconds == nil || !row.Workload.Strategy.Traits().Sequential && !row.Workload.Strategy.Traits().Staged {
			t.Errorf("under devmap's own engine: %s (%s): %v", row.Workload.Strategy, row.Workload.Runtime, row.Refused)
		}
	}
	fits := 0
	for i := range rows {
		r := &rows[i]
		if r.Refused == nil && r.Solution.Costs.Marks != nil {
			t.Errorf("%s: a row of peaks follows pools", r.Workload.Strategy)
		}
		if r.Fits {
			fits++
			for d := range r.Solution.Devices {
				if peak := r.Solution.Devices[d].Predicted.PeakAllocatedBytes; r.Headroom < 0 || peak > p.Topology.Devices[0].Budget() {
					t.Errorf("%s fits with a peak of %d and %d left", r.Workload.Strategy, peak, r.Headroom)
				}
			}
		}
		if i == 0 {
			continue
		}
		switch before := &rows[i-1]; {
		case before.Refused != nil && r.Refused == nil, !before.Fits && r.Fits:
			t.Errorf("%s stands before %s", before.Workload.Strategy, r.Workload.Strategy)
		case r.Fits && before.SecondsPerToken > r.SecondsPerToken:
			t.Errorf("%s is slower than %s and stands before it", before.Workload.Strategy, r.Workload.Strategy)
		case !before.Fits && r.Refused == nil && before.Headroom < r.Headroom:
			t.Errorf("%s lacks more than %s and stands before it", before.Workload.Strategy, r.Workload.Strategy)
		}
	}
	if fits == 0 || fits == len(rows) {
		t.Errorf("%d of %d rows fit: the order is not tested", fits, len(rows))
	}
}

// TestTokens: --batch is each GPU's own if every GPU runs the whole model.
func TestTokens(t *testing.T) {
	p := problem(t, "qwen2.5-0.5b", "h100-80gb", 4, training(8))
	p.Workload.Seq = 1024
	for _, r := range rowsOf(t, p) {
		if r.Refused != nil {
			continue
		}
		want := int64(8 * 1024)
		if r.Workload.Strategy.Traits().Replicated {
			want *= 4
		}
		if r.Tokens != want {
			t.Errorf("%s: %d tokens a step, not %d", r.Workload.Strategy, r.Tokens, want)
		}
		if w := &r.Workload; w.Strategy == costmodel.Pipeline && w.MicroBatches != 8 {
			t.Errorf("%d micro-batches for a batch of 8 on 4 stages, not 8", w.MicroBatches)
		}
	}
}

// TestFixedTokens: --seq does not change an image or a sound; a JAX policy is one replica.
func TestFixedTokens(t *testing.T) {
	for _, c := range []struct {
		model    string
		workload costmodel.Workload
		tokens   int64
	}{
		{"vit-large", costmodel.Workload{Mode: costmodel.Infer, Batch: 3, Strategy: costmodel.DeviceMap}, 3 * 197},
		{"whisper-large-v3", costmodel.Workload{Mode: costmodel.Infer, Batch: 3, Strategy: costmodel.DeviceMap, TargetSeq: 100}, 3 * 100},
		{"pi05", costmodel.Workload{Mode: costmodel.Infer, Batch: 3}, 3 * 768},
		{"pi05", costmodel.Workload{Mode: costmodel.Train, Batch: 3}, 2 * 3 * 768},
	} {
		for _, row := range rowsOf(t, problem(t, c.model, "h200-141gb", 2, c.workload)) {
			if row.Refused == nil && row.Tokens != c.tokens {
				t.Errorf("%s, %s: %d tokens a step, not %d", c.model, row.Workload.Strategy, row.Tokens, c.tokens)
			}
		}
	}
}

// TestRefused: strategies that exclude a GPU count or mode stay in the table, with the rule.
func TestRefused(t *testing.T) {
	tests := []struct {
		name string
		w    costmodel.Workload
		gpus int
		rule map[costmodel.Strategy]string
	}{
		{"two GPUs", training(2), 2, map[costmodel.Strategy]string{costmodel.HSDP: "takes 4 GPUs or more"}},
		{"inference", costmodel.Workload{Mode: costmodel.Infer}, 4, map[costmodel.Strategy]string{costmodel.Zero1: "shards what training adds", costmodel.Zero2: "shards what training adds"}},
		{"one sequence", training(1), 4, map[costmodel.Strategy]string{costmodel.Pipeline: "micro-batches"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := map[costmodel.Strategy]bool{}
			for _, r := range rowsOf(t, problem(t, "qwen2.5-0.5b", "h100-80gb", test.gpus, test.w)) {
				if rule, ok := test.rule[r.Workload.Strategy]; ok && r.Refused != nil && strings.Contains(r.Refused.Error(), rule) {
					found[r.Workload.Strategy] = true
				}
			}
			for s, rule := range test.rule {
				if !found[s] {
					t.Errorf("%s is not refused with %q", s, rule)
				}
			}
		})
	}
}

// TestPinned: replicated models have no place for a pin.
func TestPinned(t *testing.T) {
	p := problem(t, "qwen2.5-0.5b", "h100-80gb", 2, training(4))
	p.Pins = []devicemap.Pin{{Pattern: "lm_head", Device: 1}}
	answered := 0
	for _, r := range rowsOf(t, p) {
		if r.Refused != nil {
			continue
		}
		answered++
		if r.Workload.Strategy.Traits().Replicated {
			t.Errorf("%s takes a pin", r.Workload.Strategy)
		}
	}
	if answered == 0 {
		t.Error("no row is answered")
	}
}

// TestRestricted: a strategy or runtime that is asked for leaves no others.
func TestRestricted(t *testing.T) {
	p := problem(t, "qwen2.5-0.5b", "h100-80gb", 4, training(4))
	p.Workload.Strategy, p.Workload.Runtime = costmodel.DDP, "lightning"
	rows := rowsOf(t, p)
	if len(rows) != 1 || rows[0].Resolved.Runtime != "lightning" {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
}

// TestCommunication compares bytes a step with ZeRO's closed forms (arXiv 1910.02054, section 7). Ψ
// are the bytes of all parameters, in bf16. FSDP2 keeps the root (embedding, norm and head)
// gathered through backward.
func TestCommunication(t *testing.T) {
	const (
		params = 8030261248
		root   = 2*128256*4096 + 4096
		n      = 4
	)
	part := func(times, elements float64) float64 { return times * (n - 1) / n * 2 * elements }
	want := map[costmodel.Strategy]float64{
		costmodel.DDP:   part(2, params),
		costmodel.Zero1: part(2, params),
		costmodel.Zero2: part(2, params),
		costmodel.Zero3: part(3, params),
		costmodel.FSDP:  part(3, params) - part(1, root),
		// Two groups of two: 3·½ inside, and an all-reduce of each half between.
		costmodel.HSDP: 3*params - root + 2*0.5*params,
		// A hidden state over each cut, and its gradient back.
		costmodel.Pipeline: 2 * 4 * 2048 * 4096 * 2,
	}
	got := map[costmodel.Strategy]int64{}
	for _, r := range rowsOf(t, problem(t, "llama-3.1-8b", "h200-141gb", n, training(4))) {
		if r.Refused == nil && r.Workload.Schedule != costmodel.Interleaved {
			got[r.Workload.Strategy] = r.Communication
		}
	}
	for s, w := range want {
		if math.Abs(float64(got[s])-w) > 1 {
			t.Errorf("%s sends %d B a step, not %.0f", s, got[s], w)
		}
	}
}
