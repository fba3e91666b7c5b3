package accuracy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// loraRows are the runs of measure_more.py with PEFT's adapters, and those with bitsandbytes'
// optimizer. costmodel/estimate checks bases without PEFT's preparation.
func loraRows(t *testing.T, file string) []row {
	t.Helper()
	var runs []struct {
		measuredRun
		Model     string
		What      string
		DeviceMap map[string]any `json:"device_map"`
		Opts      struct {
			R       int64
			Targets []string
			Ckpt    int
			Quant   string
			Prep    int
			Opt     string
		}
	}
	read(t, file, &runs)
	var rows []row
	for _, r := range runs {
		if r.Opts.Opt == "adamw8" {
			one := row{source: "more2", model: r.Model, mode: "train-adamw8", w: workload("train", r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved, dropped: true}
			one.w.Optimizer = value.AdamW8bit
			rows = append(rows, one)
		}
		if r.What != "lora" || r.Opts.Quant != "" && r.Opts.Prep == 0 {
			continue
		}
		one := row{source: "lora", model: r.Model, mode: fmt.Sprintf("r%d×%d", r.Opts.R, len(r.Opts.Targets)), w: workload("train", r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved, dropped: true}
		one.w.LoRARank, one.w.LoRATargets = r.Opts.R, r.Opts.Targets
		if r.Opts.Ckpt > 0 {
			one.w.Recompute = costmodel.RecomputeFull
			one.mode += "-ckpt"
		}
		if r.Opts.Quant != "" {
			one.w.Quantize = value.NF4
			one.mode += "-nf4"
		}
		rows = append(rows, one)
	}
	return rows
}

// TestLoRA predicts every GPU of the runs with adapters. Known differences:
//   - Qwen2.5-3B: a third of its 43 MiB weights reused blocks of another model's run in the process,
//     and paid no 1 MiB each ("loaded" in the row; allocator.Rounding).
//   - Blocks on the rotary's own GPU share its cosines and sines; each counts a copy.
//   - Up to 10 MiB a GPU under checkpoints, not located.
func TestLoRA(t *testing.T) {
	const worst, middle = .2, .1 // percent
	table := newPeaks()
	for _, r := range slices.Concat(loraRows(t, "../../../fixtures/measured/more.json"), loraRows(t, "../../../fixtures/measured/more2.json")) {
		table.add(t, &r, worst)
	}
	table.end(t, "LoRA", middle)
}
