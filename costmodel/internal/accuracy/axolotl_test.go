package accuracy_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
)

// newAxolotlRow reads model:batch:seq:opts (measured/how/measure_axolotl.py).
func newAxolotlRow(t *testing.T, name string) trainerRow {
	t.Helper()
	parts := strings.Split(name, ":")
	number := func(text string) int64 { return caseNumber(t, name, text) }
	w := costmodel.Workload{
		Preset: "axolotl", Mode: costmodel.Train, Strategy: costmodel.DDP, Batch: number(parts[1]), Seq: number(parts[2]), World: 1,
		Precision: costmodel.BF16Mixed, LossOnly: true,
	}
	targets := map[string][]string{
		"all": {"all-linear"}, "qkvo": {"q_proj", "k_proj", "v_proj", "o_proj"}, "mlp": {"gate_proj", "up_proj", "down_proj"}, "qv": {"q_proj", "v_proj"},
	}
	for _, opt := range strings.Split(parts[3], ",") {
		switch rank, ok := strings.CutPrefix(opt, "r"); {
		case ok:
			w.LoRARank = number(rank)
		case targets[opt] != nil:
			w.LoRATargets = targets[opt]
		case opt == "gc":
			w.Recompute = costmodel.RecomputeFull
		case opt == "nf4":
			w.Quantize = value.NF4
		case opt == "peft":
			w.Preset = "axolotl:peft"
		}
	}
	return trainerRow{Case: name, model: parts[0], w: w}
}

// TestPredictAxolotl predicts the cases of a file.
func TestPredictAxolotl(t *testing.T) { predictRows(t, "PREDICT_AXOLOTL", newAxolotlRow) }

// TestAxolotlAccuracy predicts Transformers' Trainer with axolotl's own LoRA kernels, on one H200.
func TestAxolotlAccuracy(t *testing.T) {
	trainerRows{file: "axolotl_h200.jsonl", name: "axolotl", read: newAxolotlRow, least: 15, worst: .5, middle: .05}.check(t)
}

// TestAxolotlBlocks checks peaks of models with a vocabulary of 1,024, so that a block sets the
// peak and not the loss. The reference is axolotl's functions on the meta device, replayed in a
// copy of torch's allocator. The difference is the allocator's rests.
func TestAxolotlBlocks(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	dev := gpu.Device(costmodel.Train)
	for name, judged := range map[string]int64{
		"llama-3.2-1b@8:2:1024:r16,all":     2317105152,
		"llama-3.2-1b@8:4:2048:r64,all":     6134339584,
		"qwen3-8b@4:2:2048:r16,all":         4318558208,
		"gemma-2b@4:2:2048:r16,all":         2811196928,
		"gemma-2-9b@2:2:1024:r16,all":       1680698880,
		"mistral-7b-v0.1@2:4:1024:r256,all": 2924095488,
		"llama-3.2-1b@8:4:2048:r16,qkvo":    6681409536,
		"llama-3.2-1b@8:4:2048:r16,mlp":     5453222912,
		"llama-3.2-1b@1:4:2048:r16,all":     1093687296,
		"llama-3.2-1b@8:4:2048:r16,all,gc":  2172238848,
		"qwen3-8b@4:2:2048:r16,all,gc":      2596400128,
		// 4-bit bases: the judge allocates what axolotl's dequantize does
		"llama-3.1-8b@4:2:2048:r16,all,nf4":   3026716672,
		"llama-3.1-8b@4:1:512:r16,all,nf4,gc": 831433728,
	} {
		row := newAxolotlRow(t, name)
		var config map[string]any
		if err := json.Unmarshal(distConfig(t, row.model), &config); err != nil {
			t.Fatal(err)
		}
		config["vocab_size"] = 1024
		for _, token := range []string{"pad_token_id", "bos_token_id", "eos_token_id"} {
			delete(config, token)
		}
		text := fixtures.Must(json.Marshal(config))(t)
		_, table := costsOf(t, text, row.w)
		peak := replicaPeak(t, table, &dev)
		got := peak.Memory.Total()
		if off := 100 * (float64(got)/float64(judged) - 1); !(math.Abs(off) <= .13) {
			t.Errorf("%s: predicted %d B (%s), judged %d B: off by %+.3f %%", name, got, peak.At, judged, off)
		}
	}
}
