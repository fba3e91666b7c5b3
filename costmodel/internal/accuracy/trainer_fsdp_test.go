package accuracy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// newShardedRow reads measure_lightning_fsdp.py's cases, and measure_trainer.py's fsdp1, off and
// nf4.
func newShardedRow(t *testing.T, name string) trainerRow {
	t.Helper()
	row := newTrainerRow(t, name)
	parts := strings.Split(name, ":")
	opts := strings.Split(parts[4], ",")
	has := func(opt string) bool { return slices.Contains(opts, opt) }
	lightning := func(preset string) {
		row.w.Preset, row.w.BuiltOn = preset, ""
		switch row.w.Precision = costmodel.FP32True; {
		case has("amp"), has("mp"):
			row.w.Precision = costmodel.BF16Mixed
		case has("true"):
			row.w.Precision = costmodel.BF16True
		}
	}
	row.w.Strategy = costmodel.FSDP
	switch parts[0] {
	case "lfsdp":
		lightning("lightning")
		if has("blocks") {
			lightning("lightning:blocks")
		}
		if has("hybrid") {
			row.w.Strategy = costmodel.HSDP
		}
	case "lmp":
		lightning("lightning:model-parallel")
	case "fsdp1":
		row.w.Preset, row.w.BuiltOn, row.w.Precision = "transformers:fsdp1", "", costmodel.BF16Mixed
		if has("pre") {
			row.w.Preset = "transformers:fsdp1-prefetch"
		}
	case "dc":
		row.w.Preset, row.w.BuiltOn, row.w.Precision = "transformers:distributed-config", "", costmodel.BF16True
	case "ddp", "one":
		row.w.Strategy = costmodel.DDP
	}
	row.onGPU = row.onGPU || parts[0] == "lfsdp"
	row.w.HostShards = has("off")
	if has("nf4") {
		row.w.Quantize, row.onGPU = value.NF4, true
	}
	return row
}

// TestPredictSharded predicts the cases of a file.
func TestPredictSharded(t *testing.T) { predictRows(t, "PREDICT_SHARDED", newShardedRow) }

// TestShardedTrainers predicts Lightning's FSDPStrategy and ModelParallelStrategy,
// and transformers' Trainer under FSDP1, with CPU offload and with a 4-bit base.
func TestShardedTrainers(t *testing.T) {
	trainerRows{file: "trainer_fsdp_h200.jsonl", name: "Sharded trainers", read: newShardedRow, least: 27, worst: .5, middle: .05, pools: true}.check(t)
}
