package emit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// TestGolden compares what every target writes and says of its golden plans with
// the files in testdata/TARGET, byte for byte. UPDATE_GOLDEN=1 writes these.
func TestGolden(t *testing.T) {
	for _, target := range emit.Targets() {
		t.Run(target.Name, func(t *testing.T) {
			folder := filepath.Join("testdata", target.Name)
			made := map[string]bool{}
			for _, name := range target.Golden {
				input := golden(t, name)
				for _, file := range []string{target.File, target.JSON} {
					if file == "" {
						continue
					}
					input.JSON = file == target.JSON
					text, err := written(target, input)
					if err != nil {
						t.Fatal(name, err)
					}
					usage, note := target.Usage(input, file)
					if !strings.Contains(usage, strings.TrimSuffix(file, filepath.Ext(file))) {
						t.Errorf("%s: usage %q does not name %s", name, usage, file)
					}
					for path, text := range map[string]string{name + filepath.Ext(file): text, name + filepath.Ext(file) + ".usage": strings.TrimSpace(usage+"\n"+note) + "\n"} {
						made[path] = true
						compare(t, filepath.Join(folder, path), text)
					}
				}
			}
			files, err := os.ReadDir(folder)
			if err != nil || len(files) == 0 {
				t.Errorf("%v: the target has no golden plan", err)
			}
			for _, file := range files {
				if !made[file.Name()] {
					t.Errorf("%s: no golden plan makes it", filepath.Join(folder, file.Name()))
				}
			}
		})
	}
}

// TestForeignPlans gives every target the golden plans of the others: it writes a
// file, or nothing and an error that names the plan's model.
func TestForeignPlans(t *testing.T) {
	plans := fixtures.Must(filepath.Glob(filepath.Join("testdata", "plans", "*.json")))(t)
	for _, target := range emit.Targets() {
		for _, path := range plans {
			input := golden(t, strings.TrimSuffix(filepath.Base(path), ".json"))
			text, err := written(target, input)
			if err == nil != (text != "") || err != nil && !strings.Contains(err.Error(), `the plan for "`+input.Plan.Model.Name+`"`) {
				t.Errorf("%s, %s: %d bytes, %v", target.Name, path, len(text), err)
			}
		}
	}
}

// TestTargets: the names are sorted, and each finds its target; no alias is a
// name or another's alias.
func TestTargets(t *testing.T) {
	var names, taken []string
	for _, target := range emit.Targets() {
		names, taken = append(names, target.Name), append(append(taken, target.Name), target.Aliases...)
		if found, err := emit.For(target.Name); err != nil || found != target {
			t.Errorf("%s finds %v, %v", target.Name, found, err)
		}
	}
	slices.Sort(taken)
	if !slices.IsSorted(names) || len(slices.Compact(taken)) != len(taken) {
		t.Errorf("names %q; with aliases %q", names, taken)
	}
	if _, err := emit.For("nothing"); err == nil || err.Error() != `unknown engine "nothing" (built: `+strings.Join(names, ", ")+`)` {
		t.Errorf("error %v", err)
	}
}

// TestNeeds: every common need refuses in its own words.
func TestNeeds(t *testing.T) {
	with := func(name string, change func(*devicemap.Plan)) *emit.Input {
		input := golden(t, name)
		change(input.Plan)
		return input
	}
	same := func(*devicemap.Plan) {}
	train := func(plan *devicemap.Plan) { plan.Workload.Mode = costmodel.Train }
	infer := func(plan *devicemap.Plan) { plan.Workload.Mode = costmodel.Infer }
	fsdp := func(plan *devicemap.Plan) { plan.Workload.Strategy, plan.Workload.Runtime = costmodel.FSDP, "torch" }
	for _, c := range []struct {
		engine string
		input  *emit.Input
		want   string
	}{
		{"accelerate", with("pipeline", same), `is a pipeline's: its stages run side by side in processes of torch.distributed.pipelining`},
		{"ms-swift", with("pipeline", func(plan *devicemap.Plan) { plan.Workload.Runtime = costmodel.Devmap }), `is a pipeline's: its stages run side by side in devmap's own engine`},
		{"accelerate", with("pipeline", func(plan *devicemap.Plan) { plan.Workload.Runtime = "megatron" }), `counts the layers and processes of megatron, which no other program has: emit --for megatron, `},
		{"axolotl", with("pipeline", func(plan *devicemap.Plan) { plan.Workload.Runtime = "torchtitan" }), `counts the layers and processes of torchtitan, which no other program has: emit --for torchtitan`},
		{"accelerate", with("diffusion", same), `is of a diffusion pipeline, whose components run one after another`},
		{"accelerate", with("device-map", train), `trains units that are on the CPU or disk`},
		{"accelerate", with("zero2", fsdp), `the plan for "m" has no device map, because its strategy is fsdp: start its program as it is, under devmap watch, or plan with strategy=device-map`},
		{"ms-swift", with("zero2", infer), `is not for training: deepspeed.initialize trains; plan it with mode=train`},
		{"deepspeed", with("zero2", infer), `is not for training: deepspeed.initialize trains; plan it with mode=train`},
		{"deepspeed", with("zero2", fsdp), `is not DeepSpeed's: its strategy is fsdp under torch; strategy=zero1, zero2 and zero3 are`},
		{"openpi", with("zero2", fsdp), `is not OpenPI's: its strategy is fsdp under torch; plan with runtime=jax`},
		{"xdit", with("device-map", same), `is of no diffusion pipeline: devmap plan takes a folder with a model_index.json`},
		{"torch-schedule", with("device-map", same), `is no pipeline's: its strategy is device-map, which has no schedule; plan it with strategy=pipeline`},
		{"torch-schedule", with("pipeline", infer), `is not for training: torch's loader wants a backward of every forward; plan it with mode=train`},
	} {
		if text, err := written(target(t, c.engine), c.input); err == nil || !strings.Contains(err.Error(), c.want) || text != "" {
			t.Errorf("%s: error %v, want %s", c.engine, err, c.want)
		}
	}
}

// target is that of an engine.
func target(tb testing.TB, name string) *emit.Target {
	tb.Helper()
	found := fixtures.Must(emit.For(name))(tb)
	return found
}

// golden is a plan of testdata/plans, with a config and a program that replace
// those of its model.
func golden(tb testing.TB, name string) *emit.Input {
	tb.Helper()
	plan := fixtures.Must(devicemap.ReadPlan(filepath.Join("testdata", "plans", name+".json")))(tb)
	file := filepath.Join("..", "..", "executor", "program", "testdata", "sound.txt")
	text := fixtures.Must(os.ReadFile(file))(tb)
	compiled := fixtures.Must(program.Parse(file, text))(tb)
	config := llama
	switch name { // their targets write the model's sizes
	case "job-torchtune", "job-titan":
		config = smallLlama
	case "job-titan-stages":
		config = largeLlama
	}
	return &emit.Input{Plan: plan, Config: []byte(config), Program: compiled}
}

// smallLlama has the sizes of Llama 3.2 1B.
const smallLlama = `{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
 "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true, "head_dim": 64, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
 "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}}`

// largeLlama has the sizes of Llama 3.1 8B.
const largeLlama = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
 "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
 "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}}`

// written is what a target writes.
func written(target *emit.Target, input *emit.Input) (string, error) {
	var text bytes.Buffer
	err := target.Write(&text, input)
	return text.String(), err
}

// compare holds a text to a committed one, which UPDATE_GOLDEN=1 writes.
func compare(t *testing.T, path, text string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := fixtures.Must(os.ReadFile(path))(t)
	if text != string(want) {
		t.Errorf("%s is\n%s, want\n%s", path, text, want)
	}
}
