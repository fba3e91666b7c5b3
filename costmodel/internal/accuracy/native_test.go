package accuracy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// newNativeRow reads measure_torch_native.py's engine:model:batch:seq:opts:world:rank.
func newNativeRow(t *testing.T, name string) trainerRow {
	t.Helper()
	row := newTrainerRow(t, name)
	opts := strings.Split(strings.Split(name, ":")[4], ",")
	has := func(opt string) bool { return slices.Contains(opts, opt) }
	row.onGPU = false // their peaks are a step's
	w := &row.w
	w.Strategy, w.Loss, w.BuiltOn = costmodel.FSDP, value.LossChunked, ""
	if strings.HasPrefix(name, "tune:") {
		w.Preset = "torchtune"
		if w.LoRARank > 0 {
			w.LoRATargets = []string{"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
		}
		return row
	}
	w.Preset, w.Precision = "torchtitan", costmodel.BF16Mixed
	if has("nog") {
		w.Preset = "torchtitan:eager"
	}
	switch {
	case has("ac"):
	case !has("noac"):
		w.Recompute = value.RecomputeSelective
	}
	if has("ce") {
		w.Loss = value.LossEager
	}
	if has("hsdp") {
		w.Strategy = costmodel.HSDP
	}
	return row
}

// TestNativeAccuracy predicts torchtune's recipes and torchtitan's Trainer.
func TestNativeAccuracy(t *testing.T) {
	trainerRows{
		file: "native_h200.jsonl", name: "torchtune and torchtitan", read: newNativeRow, least: 35, worst: .2, middle: .05, pools: true,
	}.check(t)
}
