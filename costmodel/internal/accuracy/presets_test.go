package accuracy_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// presetPrograms are the presets by the name in a row.
var presetPrograms = map[string]string{"sft": "trl-sft", "dpo": "trl-dpo", "grpo": "trl-grpo", "lf": "llamafactory", "swift": "ms-swift"}

// newPresetRow reads program:engine:model:batch:seq:opts:world:rank (measured/how/measure_presets.py).
func newPresetRow(t *testing.T, name string) trainerRow {
	t.Helper()
	parts := strings.Split(name, ":")
	opts := strings.Split(parts[5], ",")
	number := func(text string) int64 { return caseNumber(t, name, text) }
	has := func(opt string) bool { return slices.Contains(opts, opt) }
	program := parts[0]
	row := trainerRow{Case: name, model: parts[2], w: costmodel.Workload{
		Preset: presetPrograms[program], Mode: costmodel.Train, Strategy: costmodel.DDP, Batch: number(parts[3]), Seq: number(parts[4]), World: number(parts[6]),
		LossOnly: true, BuiltOn: "cpu", Recompute: costmodel.RecomputeFull,
	}}
	trl := program == "sft" || program == "dpo" || program == "grpo"
	if trl {
		row.w.Loss = value.LossTiled
	}
	if has("pre") { // no reference model while it trains
		row.w.Preset, row.w.Batch = "trl-sft", 2*row.w.Batch
	}
	switch parts[1] {
	case "fsdp2":
		row.w.Strategy = costmodel.FSDP
	case "zero2", "zero3":
		row.w.Strategy, row.w.DeepSpeed = costmodel.Strategy(parts[1]), usualZero(t, row.model, parts[1])
		if program == "swift" { // swift/config/zero2.json, zero3.json
			row.w.DeepSpeed.Overlap = false
			if row.w.DeepSpeed.Stage == 2 {
				row.w.DeepSpeed.ReduceBucket, row.w.DeepSpeed.AllgatherBucket = 2e8, 2e8
			}
		}
	}
	for opt, optimizer := range rowOptimizers {
		if has(opt) {
			row.w.Optimizer = optimizer
		}
	}
	if has("nf4") {
		row.w.Quantize = value.NF4
	}
	if has("pf") {
		row.w.Packing, row.w.Attention = trainer.PaddingFree, value.FlashAttention
	}
	for _, opt := range opts {
		if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "ga"), 10, 64); err == nil {
			row.w.MicroBatches, row.w.Batch = n, row.w.Batch*n
		} else if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "g"), 10, 64); err == nil {
			row.w.NewTokens, row.w.Seq = n, row.w.Seq-n // of the whole sequence
		} else if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "r"), 10, 64); err == nil {
			row.w.LoRARank, row.w.LoRATargets = n, []string{"q_proj", "v_proj"}
		}
	}
	if has("all") {
		row.w.LoRATargets = []string{"all-linear"}
	}
	if has("nogc") {
		row.w.Recompute = costmodel.RecomputeNone
	}
	// The script's dropout; DPO switches it off, LLaMA-Factory has none.
	row.w.LoRADropout = row.w.LoRARank > 0 && (program == "sft" || program == "grpo" || program == "swift")
	lora, sharded := row.w.LoRARank > 0, row.w.Strategy == costmodel.FSDP
	switch {
	case trl && (!has("w16") || sharded && !lora): // loaded in fp32, or made so
		row.w.Precision = costmodel.BF16Mixed
	case row.w.DeepSpeed != nil: // fp32 masters
		row.w.Precision = costmodel.BF16Mixed
	case trl, program == "swift" && !lora && !sharded, program == "lf" && lora && !has("bf16"):
		row.w.Precision = costmodel.BF16True
	case program == "lf" && !has("bf16"):
		row.w.Precision = costmodel.FP32True
	default:
		row.w.Precision = costmodel.BF16Mixed
	}
	return row
}

// TestPredictPresets predicts the cases of a file.
func TestPredictPresets(t *testing.T) { predictRows(t, "PREDICT_PRESETS", newPresetRow) }

// TestPresetAccuracy predicts TRL's, LLaMA-Factory's and ms-swift's own trainers.
func TestPresetAccuracy(t *testing.T) {
	trainerRows{
		file: "presets_h200.jsonl", name: "Presets", read: newPresetRow, least: 67, worst: .3, middle: .03, pools: true,
		wider: map[string]float64{"lf:ddp:qwen2.5-7b:2:2048:r16,all,bf16:4:0": .03, "sft:ddp:qwen2.5-7b:1:2048:w16,r16,all:4:0": .05}, // adapters lie in what weights left
	}.check(t)
}
