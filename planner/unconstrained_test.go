package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// best returns the best map, even if it does not fit.
func best(t *testing.T, p planner.Problem) *planner.Solution {
	t.Helper()
	s, err := planner.Solve(t.Context(), p, planner.Settings{})
	var no *planner.InfeasibleError
	if errors.As(err, &no) {
		return no.Best
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUnconstrainedFigures: the optimum of any assignment is proved, is at most the contiguous one,
// and sends the reported bytes.
func TestUnconstrainedFigures(t *testing.T) {
	for _, model := range []string{"qwen2.5-vl-3b", "t5-11b"} {
		for _, mode := range []costmodel.Mode{costmodel.Load, costmodel.Infer, costmodel.Train} {
			for _, gpus := range []int{2, 4, 8} {
				t.Run(fmt.Sprintf("%s/%s/%d", model, mode, gpus), func(t *testing.T) {
					p := randomproblem.OnH200(t, model, costmodel.Workload{Mode: mode}, gpus)
					contiguous := best(t, p)
					p.Unconstrained = true
					s := best(t, p)
					if s.Value > contiguous.Value || s.Status != planner.Optimal || s.Gap() != 0 {
						t.Errorf("largest share %.6f (%s, gap %.4f), the contiguous optimum has %.6f", s.Value, s.Status, s.Gap(), contiguous.Value)
					}
					if in := randomproblem.Instance(t, &p); !in.Contiguous(contiguous.Map) || in.Sent(s.Map) > 0 != (mode != costmodel.Load) {
						t.Errorf("%v sent; the contiguous map is said to be contiguous: %t", in.Sent(s.Map), in.Contiguous(contiguous.Map))
					}
					t.Logf("%.4f%% → %.4f%%, %.3f → %.3f GiB", 100*contiguous.Value, 100*s.Value, largest(contiguous), largest(s))
				})
			}
		}
	}
}

// TestUnconstrainedWeights: the largest GPU in GiB of weights-only plans. For Qwen2.5-VL with a
// free embedding and the rest in order, it would be 3.543, 1.791 and 0.913.
func TestUnconstrainedWeights(t *testing.T) {
	const tolerance = .0006
	for model, figures := range map[string]map[int]float64{
		"qwen2.5-vl-3b": {2: 3.497, 4: 1.760, 8: .898},
		"t5-11b":        {2: 10.561, 4: 5.311, 8: 2.686},
	} {
		for gpus, want := range figures {
			p := randomproblem.OnH200(t, model, costmodel.Workload{Mode: costmodel.Load}, gpus)
			p.Unconstrained = true
			if s := best(t, p); largest(s) > want+tolerance || s.Status != planner.Optimal {
				t.Errorf("%s on %d: %.3f GiB (%s), want %.3f", model, gpus, largest(s), s.Status, want)
			}
		}
	}
}

// TestUnconstrainedTurns: the proof ends for layers of two kinds that alternate. Of maps with equal
// shares, the answer has fewer borders.
func TestUnconstrainedTurns(t *testing.T) {
	g, err := hf.FromConfig("modernbert", []byte(`{"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "dtype": "float32",
		"hidden_size": 1024, "intermediate_size": 2624, "num_attention_heads": 16, "num_hidden_layers": 28, "global_attn_every_n_layers": 3, "vocab_size": 50368}`))
	if err != nil {
		t.Fatal(err)
	}
	for gpus, workload := range map[int]costmodel.Workload{3: {Mode: costmodel.Train, Batch: 8, Seq: 1024}, 4: {Mode: costmodel.Infer, Seq: 2048}} {
		p := randomproblem.OnH200(t, "llama-3.2-1b", workload, gpus)
		p.Graph, p.Costs = g, randomproblem.Table(t, g, workload)
		contiguous := best(t, p)
		p.Unconstrained = true
		s := best(t, p)
		if s.Status != planner.Optimal || s.Value > contiguous.Value {
			t.Errorf("%s: largest share %.6f (%s, gap %.4f), the contiguous optimum has %.6f", workload.Mode, s.Value, s.Status, s.Gap(), contiguous.Value)
		}
		if in := randomproblem.Instance(t, &p); s.Value == contiguous.Value && in.Sent(s.Map) > in.Sent(contiguous.Map) {
			t.Errorf("%s: %v is as good as %v and sends more", workload.Mode, s.Map, contiguous.Map)
		} else if (s.Value == contiguous.Value) != (workload.Mode == costmodel.Infer) {
			t.Errorf("%s: the case tests nothing", workload.Mode)
		}
	}
}

// TestUnconstrainedSmallModels compares models of real families with a few layers with exhaustive
// search. Transients, logits and workspaces have the sizes of the real models.
func TestUnconstrainedSmallModels(t *testing.T) {
	for _, c := range []struct {
		model   string
		replace []string
	}{
		{"t5-11b", []string{`"num_layers": 24`, `"num_layers": 2`, `"num_decoder_layers": 24`, `"num_decoder_layers": 1`}},
		{"llama-3.2-1b", []string{`"num_hidden_layers": 16`, `"num_hidden_layers": 4`}},
		{"gpt2", []string{`"n_layer": 12`, `"n_layer": 4`}},
	} {
		data := fixtures.Must(os.ReadFile("../fixtures/models/" + c.model + "/config.json"))(t)
		g := fixtures.Must(hf.FromConfig(c.model, []byte(strings.NewReplacer(c.replace...).Replace(string(data)))))(t)
		if len(g.Units) > 10 {
			t.Fatalf("%s has %d units: the config was not cut", c.model, len(g.Units))
		}
		for _, mode := range []costmodel.Mode{costmodel.Load, costmodel.Infer, costmodel.Train} {
			for _, gpus := range []int{2, 3} {
				p := randomproblem.OnH200(t, c.model, costmodel.Workload{Mode: mode}, gpus)
				p.Graph, p.Costs, p.Unconstrained = g, randomproblem.Table(t, g, costmodel.Workload{Mode: mode}), true
				p.Topology.Devices[gpus-1].ReservedBytes += 40 << 30
				want, s := exhaustive.Solve(&p, false), best(t, p)
				if !randomproblem.Near(s.Value, want.Value) || s.Status != planner.Optimal {
					t.Errorf("%s, %s, %d GPUs: %v has %v (%s), the best %v has %v", c.model, mode, gpus, s.Map, s.Value, s.Status, want.Map, want.Value)
				}
				for _, b := range s.Bounds {
					if b.Value > want.Value*(1+1e-9) {
						t.Errorf("%s, %s, %d GPUs: the bound %q is %v, the best map has %v", c.model, mode, gpus, b.Name, b.Value, want.Value)
					}
				}
			}
		}
	}
}

// TestUnconstrainedRelaxed: layers that alternate with and without a sliding window are as many
// classes as layers. The relaxed search bounds them.
func TestUnconstrainedRelaxed(t *testing.T) {
	p := randomproblem.OnH200(t, "gpt-oss-20b", costmodel.Workload{Mode: costmodel.Infer}, 8)
	contiguous := best(t, p)
	p.Unconstrained = true
	s := best(t, p)
	if s.Gap() > .01 || s.Value > contiguous.Value {
		t.Errorf("largest share %v (bound %v by %s), contiguous %v", s.Value, s.LowerBound, s.Bound, contiguous.Value)
	}
}

// TestUnconstrainedPins: pins and together-groups are kept, even if they allow no contiguous map.
// Units between them are free.
func TestUnconstrainedPins(t *testing.T) {
	p := randomproblem.Chain(t, []int64{5, 1, 5, 1, 5, 1}, 100, 100, 100)
	p.Pins = []devicemap.Pin{{Pattern: "h.0", Device: 2}, {Pattern: "h.5", Device: 0}}
	p.Together = [][]string{{"h.0", "h.3"}}
	var constraint *planner.ConstraintError
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &constraint) {
		t.Fatalf("a contiguous map keeps the pins: nothing is tested (%v)", err)
	}
	p.Unconstrained = true
	s := best(t, p)
	if s.Map[0] != 2 || s.Map[3] != 2 || s.Map[5] != 0 || s.Value != .06 || s.Status != planner.Optimal {
		t.Errorf("%v has %v (%s)", s.Map, s.Value, s.Status)
	}
	p.Pins = append(p.Pins, devicemap.Pin{Pattern: "h.3", Device: 1})
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &constraint) || !strings.Contains(err.Error(), "pin=h.0=2") {
		t.Errorf("h.0 and h.3 together on devices 2 and 1: %v", err)
	}
}

// TestUnconstrainedStopped: a stopped search returns a map no worse than the contiguous one, and a
// bound below it.
func TestUnconstrainedStopped(t *testing.T) {
	p := randomproblem.OnH200(t, "llama-3_1-nemotron-ultra-253b-v1", costmodel.Workload{Mode: costmodel.Infer}, 8)
	contiguous := best(t, p)
	p.Unconstrained = true
	s, err := planner.Solve(t.Context(), p, planner.Settings{TimeLimit: 500 * time.Millisecond})
	if err != nil || s.Status != planner.LimitReached || s.Value > contiguous.Value || s.LowerBound > s.Value || s.LowerBound <= 0 {
		t.Fatalf("%v, %s: %v, bound %v, contiguous %v", err, s.Status, s.Value, s.LowerBound, contiguous.Value)
	}
	if !strings.Contains(s.Method, "ran out of time") {
		t.Error(s.Method)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err = planner.Solve(ctx, p, planner.Settings{})
	if s == nil || s.Status != planner.LimitReached || s.LowerBound > s.Value {
		t.Errorf("interrupted at once: %v", err)
	}
}

// TestUnconstrainedTooLarge: if the tables of a search would be too large, the answer is the
// contiguous optimum with the bounds of any assignment.
func TestUnconstrainedTooLarge(t *testing.T) {
	sizes := make([]int64, 3000)
	for i := range sizes {
		sizes[i] = int64(1000 + i*i%977)
	}
	devices := make([]int64, 300)
	for d := range devices {
		devices[d] = 1 << 20
	}
	p := randomproblem.Chain(t, sizes, devices...)
	contiguous := best(t, p)
	p.Unconstrained = true
	s := best(t, p)
	if s.Value != contiguous.Value || s.LowerBound <= 0 || s.LowerBound > s.Value || !strings.Contains(s.Method, "too many") {
		t.Errorf("%v, bound %v, contiguous %v: %s", s.Value, s.LowerBound, contiguous.Value, s.Method)
	}
	p.Pins = []devicemap.Pin{{Pattern: "h.0", Device: 1}, {Pattern: "h.2999", Device: 0}}
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("pins against the order: %v", err)
	}
}

// TestExplained: every answer has a method, and no bound exceeds its value.
func TestExplained(t *testing.T) {
	for _, w := range []costmodel.Workload{
		{Mode: costmodel.Train},
		{Mode: costmodel.Load},
		{Mode: costmodel.Train, Strategy: costmodel.Pipeline, World: 4, Batch: 8, MicroBatches: 8, Schedule: costmodel.OneFOneB},
		{Mode: costmodel.Train, Strategy: costmodel.FSDP, World: 4},
	} {
		p := randomproblem.OnH200(t, "llama-3.2-1b", w, 4)
		s := best(t, p)
		if s.Method == "" {
			t.Errorf("%s, %s: no method", w.Mode, w.Strategy)
		}
		arguments := s.Arguments(&p)
		if got, want := len(arguments) > 0, w.Strategy == ""; got != want {
			t.Errorf("%s, %s: %d arguments", w.Mode, w.Strategy, len(arguments))
		}
		for _, b := range arguments {
			if b.Value > s.Value*(1+1e-9) || b.What == "" {
				t.Errorf("%s, %s: %+v, and the map has %v", w.Mode, w.Strategy, b, s.Value)
			}
		}
	}
}
