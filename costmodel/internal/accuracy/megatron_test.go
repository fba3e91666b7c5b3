package accuracy_test

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
)

// megatronGPT is the model of Megatron-LM's functional tests gpt3_mcore_te_tp1_pp1
// with its padded vocabulary (tests/functional_tests, commit d98e8a64).
const megatronGPT = `{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 512, "n_layer": 12, "n_head": 8, "n_positions": 1024,
	"vocab_size": 50304, "resid_pdrop": 0.1, "embd_pdrop": 0, "attn_pdrop": 0, "torch_dtype": "bfloat16"}`

// TestMegatronAccuracy predicts Megatron-LM's own figures on 8 H100: bytes at rest, and the peak.
// For the run without a distributed optimizer it compares a step's bytes above those at rest. Small
// tensors of the step are missing.
func TestMegatronAccuracy(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h100-80gb"))(t)
	rows := 0
	type row struct {
		Test, Recompute string
		Static, Peak    int64
		Distributed     bool
	}
	for _, row := range fixtures.Must(fixtures.Rows[row]("../../../fixtures/measured/megatron_golden.jsonl"))(t) {
		if row.Recompute == "" {
			continue
		}
		rows++
		_, table := costsOf(t, []byte(megatronGPT), costmodel.Workload{
			Preset: "ms-swift-megatron", Mode: costmodel.Train, Strategy: costmodel.DDP, Batch: 4, Seq: 1024, World: 8,
			Precision: costmodel.BF16Mixed, Recompute: row.Recompute, LossOnly: true,
		})
		dev := gpu.Device(costmodel.Train)
		memory := replicaPeak(t, table, &dev).Memory
		static := memory.Total() - memory.Activations
		if off := static - row.Static; row.Distributed && (off > 0 || off < -16<<10) {
			t.Errorf("%s: %d bytes at rest, measured %d", row.Test, static, row.Static)
		}
		got, measured := memory.Total(), row.Peak
		if !row.Distributed {
			got, measured = memory.Activations, row.Peak-row.Static
		}
		off := 100 * (float64(got)/float64(measured) - 1)
		t.Logf("%s: predicted %d B, measured %d B: %+.2f %%", row.Test, got, measured, off)
		if !(math.Abs(off) <= .6) {
			t.Errorf("%s: off by %+.2f %%", row.Test, off)
		}
	}
	if rows != 3 {
		t.Errorf("%d rows", rows)
	}
}
