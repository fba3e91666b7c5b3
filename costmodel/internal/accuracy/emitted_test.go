package accuracy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// newEmittedRow reads the case of a run started by a file of devmap emit (measured/how/emitted).
func newEmittedRow(t *testing.T, name string) (row trainerRow) {
	t.Helper()
	switch program, _, _ := strings.Cut(name, ":"); program {
	case "sft":
		row = newPresetRow(t, name)
	case "fsdp1":
		row = newShardedRow(t, name)
	default:
		row = newTrainerRow(t, name)
	}
	row.w.DeepSpeed = nil // the emitted file leaves sizes to DeepSpeed
	return row
}

// TestEmittedFiles predicts both GPUs of 24 runs by the command that devmap emit prints. The shards of
// Qwen 2.5 0.5B have many sizes. In the first optimizer step weights, gradients and states are 4·W/2
// (W: fp32 weights), and the rests of their blocks 84 MB more. Requests under TRL are not followed.
func TestEmittedFiles(t *testing.T) {
	const small, plain = "sft:fsdp2:qwen2.5-0.5b:2:1024:x:2:", "sft:ddp:qwen2.5-0.5b:2:1024:nogc:2:"
	trainerRows{
		file: "emitted_h200.jsonl", name: "Emitted files", read: newEmittedRow, least: 48, worst: .27, middle: .03,
		wider: map[string]float64{small + "0": 2.4, small + "1": 2.4, plain + "0": .44, plain + "1": .44},
	}.check(t)
}

// TestBroadcast predicts the peak before the first step under FSDP2: a state dict's broadcast to
// shards. The allocator's rests of small shards are not predicted.
func TestBroadcast(t *testing.T) {
	rows := 0
	for _, read := range fixtures.Must(fixtures.Rows[trainerRow]("../../../fixtures/measured/emitted_h200.jsonl"))(t) {
		row := newEmittedRow(t, read.Case)
		if row.w.Strategy != costmodel.FSDP || row.w.Preset == "transformers:fsdp1" {
			continue
		}
		rows++
		_, table := costsOf(t, distConfig(t, row.model), row.w)
		got := table.Prepared
		for i := range table.Units {
			got += table.Units[i].Params + table.Units[i].Padding
		}
		off := 100 * (float64(got)/float64(read.Prep) - 1)
		t.Logf("%s: predicted %d B before the first step, measured %d B: %+.3f %%", read.Case, got, read.Prep, off)
		if !(math.Abs(off) <= .5) {
			t.Errorf("%s: predicted %d B before the first step, measured %d B: off by %+.2f %%", read.Case, got, read.Prep, off)
		}
	}
	if rows != 16 {
		t.Errorf("%d rows", rows)
	}
}
