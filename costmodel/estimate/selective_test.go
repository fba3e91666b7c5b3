package estimate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestSelective: bytes a token and block of torchtitan's selective checkpointing, every second
// product (parallelize_llama.py, _apply_ac_to_transformer_block). Llama-3.1-8B keeps wq, wv, w1,
// w2, attention's output and log-sum-exp, and the block's input, 63,616. q, k and v with biases are
// addmm: Qwen2 keeps wo and w3. All of GPT-2's are.
func TestSelective(t *testing.T) {
	for model, want := range map[string]int64{
		"llama-3.1-8b": 2*(4096+4096+1024+14336+4096) + 4*32 + 2*4096,
		"qwen2.5-3b":   2*(2048+2048+11008) + 4*16 + 2*2048,
		"gpt2-xl":      2*1600 + 4*25 + 2*1600,
		"phi-3-mini":   2*(3*3072+3072+2*8192) + 4*32 + 2*3072,
	} {
		g := fixtures.Must(load.Model(model, load.Options{BuiltIn: fixtures.Models()}))(t)
		w, err := estimate.Resolve(g, costmodel.Workload{
			Mode: costmodel.Train, Strategy: costmodel.DDP, World: 2, Batch: 2, Seq: 1024, Recompute: value.RecomputeSelective,
			Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
		})
		if err != nil {
			t.Fatal(err)
		}
		tab := fixtures.Must(estimate.Table(g, w))(t)
		block, ok := estimate.UnitNamed(g, map[bool]string{true: "transformer.h.1", false: "model.layers.1"}[model == "gpt2-xl"])
		if !ok {
			t.Fatalf("%s has no second block", model)
		}
		const philox = 1024 // the kernel's seeds, once a block
		if got := timeline.Of(&tab.Units[block]).Saved - philox; got != want*2048 || model == "llama-3.1-8b" && want != 63616 {
			t.Errorf("%s: %.2f bytes a token, want %d", model, float64(got)/2048, want)
		}
	}
}

// TestSelectiveOrder: selective keeps more than full and less than none, and peaks between them.
func TestSelectiveOrder(t *testing.T) {
	g := fixtures.Must(load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models()}))(t)
	peak := func(r string) int64 {
		w, err := estimate.Resolve(g, costmodel.Workload{
			Mode: costmodel.Train, Strategy: costmodel.FSDP, World: 8, Batch: 2, Seq: 8192, Recompute: r,
			Precision: costmodel.BF16Mixed, Optimizer: costmodel.AdamW,
		})
		if err != nil {
			t.Fatal(err)
		}
		tab := fixtures.Must(estimate.Table(g, w))(t)
		replica := fixtures.Must(timeline.Replica(tab, &costmodel.Device{CapacityBytes: 80 << 30, WorkspaceBytes: 32 << 20}))(t)
		return replica.Peak().Memory.Total()
	}
	full, selective, none := peak(costmodel.RecomputeFull), peak(value.RecomputeSelective), peak(costmodel.RecomputeNone)
	if full >= selective || selective >= none {
		t.Errorf("full peaks at %d, selective at %d, none at %d", full, selective, none)
	}
	// 32 blocks keep 63,616 − 8,192 bytes a token more than with full.
	if got, want := selective-full, int64(32*(63616-8192)*2*8192); float64(got) < .9*float64(want) || float64(got) > 1.01*float64(want) {
		t.Errorf("selective peaks %d above full; its kept tensors are %d", got, want)
	}
}

// TestSelectiveRefused: only torch's engines do it.
func TestSelectiveRefused(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", `+tiny+`}`)
	for _, s := range []costmodel.Strategy{costmodel.DeviceMap, costmodel.Zero2} {
		_, err := estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Train, Strategy: s, World: 2, Recompute: value.RecomputeSelective, Precision: costmodel.BF16True})
		var fault *costmodel.FieldError
		if !errors.As(err, &fault) || fault.Field != "recompute" || !strings.Contains(fault.Msg.String(), "full and none work") {
			t.Errorf("%s: %v", s, err)
		}
	}
}
