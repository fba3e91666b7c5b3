package accuracy_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
)

// maskRows are the runs of measure_masks.py on 2 × H200 under maps of devmap (2026-11-22): windows
// that the sequence fills or exceeds, eager attention, PyTorch's copy of flash-attn's kernels,
// 16-bit adapters.
func maskRows(t *testing.T) []row {
	t.Helper()
	var rows []row
	type line struct {
		measuredRun
		Model         string
		Config        json.RawMessage
		DeviceMap     map[string]any `json:"device_map"`
		Attention     string
		NewTokens     int64    `json:"new_tokens"`
		LoRARank      int64    `json:"lora_rank"`
		LoRATargets   []string `json:"lora_targets"`
		LoRAPrecision string   `json:"lora_precision"`
	}
	for _, r := range fixtures.Must(fixtures.Rows[line]("../../../fixtures/measured/masks.jsonl"))(t) {
		one := row{source: "masks", model: r.Model, config: string(r.Config), mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved}
		one.w.NewTokens, one.w.Attention, one.w.LoRARank, one.w.LoRATargets, one.w.LoRAPrecision = r.NewTokens, r.Attention, r.LoRARank, r.LoRATargets, r.LoRAPrecision
		if r.Attention != value.SDPA {
			one.mode += "-" + r.Attention
		}
		if r.LoRARank > 0 {
			one.mode += fmt.Sprintf("-r%d×%d", r.LoRARank, len(r.LoRATargets))
		}
		rows = append(rows, one)
	}
	return rows
}

// TestMaskAccuracy predicts them ("make accuracy"). Known differences:
//   - Blocks on the rotary's own GPU share its cosines and sines, and on the embedding's GPU the
//     mask; each counts a copy. Gemma 3 has two kinds of cosines and sines, and a copy is of one.
//   - A capped head without the norm on its GPU has released its input.
//   - Up to 20 MiB of Gemma 3, and of LoRA with eager attention, not located.
func TestMaskAccuracy(t *testing.T) {
	const trained, inferred, middle = .3, .45, .05 // percent
	table := newPeaks()
	for _, r := range maskRows(t) {
		worst := trained
		if r.infers() {
			worst = inferred
		}
		table.add(t, &r, worst)
	}
	table.end(t, "masks", middle)
}
