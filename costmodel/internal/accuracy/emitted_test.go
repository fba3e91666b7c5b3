package accuracy_test

import (
	"strings"
	"testing"
)

// newEmittedRow reads the case of a run started by a file of devmap emit (measured/how/emitted.sh).
func newEmittedRow(t *testing.T, name string) trainerRow {
	t.Helper()
	switch program, _, _ := strings.Cut(name, ":"); program {
	case "sft":
		return newPresetRow(t, name)
	case "fsdp1":
		return newShardedRow(t, name)
	}
	return newTrainerRow(t, name)
}

// TestEmittedFiles predicts both GPUs of ten runs by the command that devmap emit prints.
func TestEmittedFiles(t *testing.T) {
	trainerRows{file: "emitted_h200.jsonl", name: "Emitted files", read: newEmittedRow, least: 20, worst: .25, middle: .03}.check(t)
}
