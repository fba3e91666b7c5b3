package accuracy_test

import "testing"

// TestFloat8Measured predicts transformers' own Trainer with torchao's linear layers
// and optimizers (measured/how/measure_trainer.py).
func TestFloat8Measured(t *testing.T) {
	trainerRows{
		file: "float8_h200.jsonl", name: "torchao", read: newTrainerRow, least: 25, worst: 0.2, middle: 0.05, pools: true,
		// 72 gradients of 8.3 MiB lie in blocks that are up to 1 MiB larger.
		wider: map[string]float64{"one:qwen2.5-0.5b:2:512:ao8,parts,gc:1:0": 0.8},
	}.check(t)
}
