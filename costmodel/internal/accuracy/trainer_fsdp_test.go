package accuracy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// newShardedRow reads the cases of measured/how/measure_lightning_fsdp.py, and of
// measure_trainer.py's fsdp1, off and nf4.
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
	case "ddp":
		row.w.Strategy = costmodel.DDP
	}
	row.onGPU = row.onGPU || parts[0] == "lfsdp"
	row.w.HostShards = has("off")
	if has("nf4") {
		row.w.Quantize, row.onGPU = value.NF4, true
	}
	return row
}

// TestPredictSharded writes predictions of the cases that PREDICT_SHARDED lists.
func TestPredictSharded(t *testing.T) {
	list := os.Getenv("PREDICT_SHARDED")
	if list == "" {
		t.Skip("PREDICT_SHARDED names no cases")
	}
	for name := range strings.FieldsSeq(list) {
		row := newShardedRow(t, name)
		got, at, slack := row.predicted(t)
		t.Logf("{\"case\": %q, \"peak_allocated\": %d, \"at\": %q, \"reserved_from\": %d, \"reserved_to\": %d}", name, got, at, int64(float64(got)*(1+slack[0])), int64(float64(got)*(1+slack[1])))
	}
}

// TestShardedTrainers predicts Lightning's FSDPStrategy and ModelParallelStrategy,
// and transformers' Trainer under FSDP1, with CPU offload and with a 4-bit base.
func TestShardedTrainers(t *testing.T) {
	const worst, middle = .5, .05
	text, err := os.ReadFile("../../../fixtures/measured/trainer_fsdp_h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	var off []float64
	inside := 0
	for line := range strings.Lines(string(text)) {
		var read trainerRow
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		row := newShardedRow(t, read.Case)
		measured := slices.Max(read.Steps)
		if row.onGPU {
			measured = max(measured, read.Prep)
		}
		got, at, slack := row.predicted(t)
		if pinned := read.Host.Pinned; pinned > 0 { // of parts and gradients; Adam's states are pageable
			graph, costs := costsOf(t, distConfig(t, row.model), row.w)
			if got := costs.HostBytes/row.w.World - 8*graph.ParamCount()/row.w.World; math.Abs(float64(got)/float64(pinned)-1) > .005 {
				t.Errorf("%s: predicted %d B of pinned memory, measured %d B", read.Case, got, pinned)
			}
		}
		if pool := float64(read.Pool)/float64(got) - 1; slack[0] <= pool && pool <= slack[1] {
			inside++
		}
		percent := 100 * (float64(got)/float64(measured) - 1)
		fmt.Fprintf(&table, "%-52s %8.3f %8.3f %+7.3f%% %+8.2f  %s\n", read.Case, gib(got), gib(measured), percent, float64(got-measured)/(1<<20), at)
		off = append(off, math.Abs(percent))
		if !(math.Abs(percent) <= worst) {
			t.Errorf("%s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", read.Case, got, measured, percent, worst)
		}
	}
	summary(t, &table, "Sharded trainers", off)
	slices.Sort(off)
	if len(off) < 12 || off[len(off)/2] > middle {
		t.Errorf("%d rows, the one in the middle off by %.3f %%", len(off), off[len(off)/2])
	}
	t.Logf("%s%d of %d pools in their range", table.String(), inside, len(off))
	if 10*inside < 9*len(off) {
		t.Errorf("%d of %d pools are in their range", inside, len(off))
	}
}
