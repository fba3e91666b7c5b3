package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestProgramContract: the program of a plan reads back as printed, as text and as JSON. It has no
// faults, and takes the predicted bytes and time.
func TestProgramContract(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"llama-3.2-1b --strategy pipeline --mode train --batch 4 --micro-batches 4",
		"llama-3.2-1b --strategy pipeline --mode train --batch 3 --micro-batches 3 --schedule interleaved --recompute full --precision bf16-mixed --runtime devmap",
		"gpt2 --strategy device-map --mode train --optimizer sgd",
		"gemma-2b --strategy pipeline --schedule gpipe --mode infer --batch 2 --micro-batches 2 --new-tokens 3 --runtime devmap",
		"phi-3-mini --strategy device-map --mode infer --new-tokens 2",
		"bert-large --strategy device-map --mode infer",
		"qwen3-8b --strategy device-map --mode load",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			plan := filepath.Join(t.TempDir(), "plan.json")
			devmap(t, 0, append([]string{"plan", "--gpus", "2", "--gpu", "h200-141gb", "--seq", "64", "-o", plan}, strings.Fields(command)...)...)
			text := devmap(t, 0, "emit", plan, "--for", "program")
			inJSON := devmap(t, 0, "emit", plan, "--for", "program", "--json")
			for _, data := range [][]byte{text, inJSON} {
				made, err := program.Parse("program", data)
				if err != nil {
					t.Fatal(err)
				}
				var again, againJSON bytes.Buffer
				if err := made.Text(&again); err != nil || !bytes.Equal(again.Bytes(), text) {
					t.Errorf("printed again it differs: %v", err)
				}
				if err := made.WriteJSON(&againJSON); err != nil || !bytes.Equal(againJSON.Bytes(), inJSON) {
					t.Errorf("written again it differs: %v", err)
				}
				if err := made.Check().Err(); err != nil {
					t.Error(err)
				}
				simulated, err := simulate.Run(made)
				if err != nil || simulated.Makespan != made.Predictions[0].StepTicks {
					t.Errorf("played: %v, predicted %d picoseconds: %+v", err, made.Predictions[0].StepTicks, simulated)
				}
				for i, device := range made.Devices {
					if peak := made.Predictions[0].Peaks[i]; peak != device.Arena {
						t.Errorf("device %d: predicted %d bytes, its arena has %d", i, peak, device.Arena)
					}
				}
				if own := strings.Contains(command, "devmap"); made.Predictions[0].Runtime != "devmap" || len(made.Predictions) == 1 != own {
					t.Errorf("predictions %+v", made.Predictions)
				}
			}
		})
	}
}
