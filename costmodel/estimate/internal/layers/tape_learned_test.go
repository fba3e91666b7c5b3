package layers

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
)

// TestAsked: the steps that tapes of a table may be for. Accelerate's models return fp32 results, so
// autocast is for a plain loop. It and adapters are for one GPU.
func TestAsked(t *testing.T) {
	for name, of := range map[string]struct {
		change func(*costmodel.Workload)
		kind   string
		plain  bool
	}{
		"bf16":                {func(*costmodel.Workload) {}, "", true},
		"fp32":                {func(w *costmodel.Workload) { w.Precision = costmodel.FP32True }, "fp32", true},
		"fp16":                {func(w *costmodel.Workload) { w.Precision = costmodel.FP16Mixed }, "", false},
		"autocast":            {func(w *costmodel.Workload) { w.Precision = costmodel.BF16Mixed }, "autocast", true},
		"autocast of Trainer": {func(w *costmodel.Workload) { w.Precision, w.Preset = costmodel.BF16Mixed, trainer.Usual }, "", false},
		"autocast of two":     {func(w *costmodel.Workload) { w.Precision, w.OneGPU = costmodel.BF16Mixed, false }, "", false},
		"adapters":            {func(w *costmodel.Workload) { lora(w) }, "lora", true},
		"adapters of two":     {func(w *costmodel.Workload) { lora(w); w.OneGPU = false }, "lora", false},
		"adapters in bf16":    {func(w *costmodel.Workload) { lora(w); w.LoRAPrecision = "bf16" }, "lora", false},
		"some adapters":       {func(w *costmodel.Workload) { lora(w); w.LoRATargets = []string{"q_proj"} }, "lora", false},
		"flash attention":     {func(w *costmodel.Workload) { w.Attention = "flash" }, "", false},
	} {
		w := costmodel.Workload{Mode: costmodel.Train, Batch: 2, MicroBatches: 1, Seq: 512, Precision: costmodel.BF16True, Preset: trainer.Loop, OneGPU: true}
		of.change(&w)
		if step, plain := asked(&Model{Workload: w, Train: true}); step.Kind != of.kind || plain != of.plain || step.Step != "train" {
			t.Errorf("%s: %+v, %v", name, step, plain)
		}
	}
}

func lora(w *costmodel.Workload) {
	w.LoRARank, w.LoRATargets, w.LoRAPrecision = 8, []string{"all-linear"}, "fp32"
}
