package emit_test

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestJobNames: names of modules come out of a job's file as they went in, whatever
// YAML or a terminal makes of them elsewhere.
func TestJobNames(t *testing.T) {
	for _, name := range append(slices.Clone(hostile), "yes", "1e3", "null", "*alias", "a: b", "#c", "-", "{x}", "") {
		input := golden(t, "job-trl")
		input.Plan.Workload.LoRATargets = []string{name, "q_proj"}
		text, err := written(target(t, "trl"), input)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		var read struct {
			Targets []string `yaml:"lora_target_modules"`
			Rank    int64    `yaml:"lora_r"`
		}
		if err := yaml.Unmarshal([]byte(text), &read); err != nil || read.Targets[0] != name || read.Rank != 16 {
			t.Errorf("%q: %v, %+v", name, err, read)
		}
	}
}
