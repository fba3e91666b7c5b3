package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// smallLlama is Llama 3.2 1B of so many layers.
const smallLlama = `{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": %d, "num_attention_heads": 32,
	"num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": true}`

// hook is a line of what DeepSpeed itself counted (fixtures/measured/how/record_hooks.py).
type hook struct {
	kind string // F, f, B or b
	live int64
}

func recorded(t *testing.T, name string) []hook {
	t.Helper()
	text := fixtures.Must(os.ReadFile("testdata/hooks-" + name + ".txt"))(t)
	var out []hook
	for line := range strings.Lines(string(text)) {
		var each hook
		if _, err := fmt.Sscan(line, &each.kind, &each.live); err != nil {
			t.Fatal(name, err)
		}
		out = append(out, each)
	}
	return out
}

// walked are the same of this package's trace. Containers without a tensor input with a gradient
// have no hook after their backward: ours without effect are left out if the other has none.
func walked(t *testing.T, text string, workload costmodel.Workload, limits zero.Limits, persistence int64) []hook {
	t.Helper()
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(text)))(t)
	model := fixtures.Must(layers.New(graph, workload, deepspeed{}.Rules(&workload)))(t)
	root, trace := modulesOf(model, persistence)
	hooksOf(root, trace, true, model.Recomputes)
	var out []hook
	for i, moment := range zero.Walk(trace, limits, workload.ShardDegree, false) {
		kind := "F"
		switch step := &trace.Steps[i]; {
		case step.Ends && step.Backward:
			kind = "b"
		case step.Ends:
			kind = "f"
		case step.Backward:
			kind = "B"
		}
		out = append(out, hook{kind, moment.Live})
	}
	return out
}

// TestHooks: parameters come and go at the hooks at which DeepSpeed counted them, to the element.
func TestHooks(t *testing.T) {
	defaults := zero.Defaults(3)
	plain := costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Zero3, Runtime: value.DeepSpeed, Batch: 1, MicroBatches: 1, Seq: 8, TargetSeq: 8,
		Precision: costmodel.BF16Mixed, World: 8, ShardDegree: 8, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone,
	}
	recomputed := plain
	recomputed.Recompute = costmodel.RecomputeFull
	adapted := plain
	adapted.LoRARank, adapted.LoRAPrecision, adapted.LoRATargets = 4, value.AdaptersBF16, []string{layers.AllLinear}
	two := recomputed
	two.LoRARank, two.LoRAPrecision, two.LoRATargets = 4, value.AdaptersBF16, []string{"q_proj", "v_proj"}
	for _, c := range []struct {
		name        string
		layers      int
		workload    costmodel.Workload
		limits      zero.Limits
		persistence int64
	}{
		{"plain", 3, plain, defaults.Limits, defaults.Persistence},
		{"small-limits", 2, recomputed, zero.Limits{Prefetch: 1e6, Live: 1e8, Reuse: 1e7}, 1000},
		{"lora-all", 2, adapted, defaults.Limits, defaults.Persistence},
		{"lora-qv-recompute", 2, two, defaults.Limits, defaults.Persistence},
	} {
		want, got := recorded(t, c.name), walked(t, fmt.Sprintf(smallLlama, c.layers), c.workload, c.limits, c.persistence)
		at := 0
		for i, one := range got {
			switch {
			case at < len(want) && one == want[at]:
				at++
			case one.kind == "b" && i > 0 && one.live == got[i-1].live || at == len(want): // a container's, or the end's
			default:
				t.Fatalf("%s, hook %d: %+v, and DeepSpeed counts %+v", c.name, i, one, want[min(at, len(want)-1)])
			}
		}
		if at != len(want) {
			t.Errorf("%s: %d of DeepSpeed's %d hooks", c.name, at, len(want))
		}
	}
}
