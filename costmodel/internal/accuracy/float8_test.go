package accuracy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestFloat8Measured predicts transformers' own Trainer with torchao's linear layers
// and optimizers (measured/how/measure_trainer.py).
func TestFloat8Measured(t *testing.T) {
	trainerRows{file: "float8_h200.jsonl", name: "torchao", read: newTrainerRow, least: 1, worst: 0.5, middle: 0.05}.check(t)
}

func TestPredictFloat8(t *testing.T) {
	text, _ := os.ReadFile(os.Getenv("CASES"))
	for name := range strings.Lines(string(text)) {
		name = strings.TrimSpace(name)
		row := newTrainerRow(t, name)
		got, at, slack := row.predicted(t)
		out, _ := json.Marshal(map[string]any{"case": name, "predicted": got, "at": at, "slack": slack})
		println(string(out))
	}
}
