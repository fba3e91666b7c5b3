package ask

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestPresetTables: every default is a value of a field, has a source, and belongs to a preset of
// the cost model. So does every value that a key of a file sets.
func TestPresetTables(t *testing.T) {
	fields := costmodel.Fields()
	names := flagNamed("preset").field.Values
	check := func(where string, set presetSet) {
		t.Helper()
		if set.Field == "offload" { // a flag of the search
			return
		}
		i := slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == set.Field })
		if i < 0 {
			t.Errorf("%s: the field %q", where, set.Field)
			return
		}
		if set.Value != "*" && fields[i].Values != nil && !slices.Contains(fields[i].Values, set.Value) {
			t.Errorf("%s: %s %q is none of %v", where, set.Field, set.Value, fields[i].Values)
		}
		for _, strategy := range set.Under {
			if costmodel.Strategy(strategy).Traits().Open {
				t.Errorf("%s: the strategy %q", where, strategy)
			}
		}
		if set.When != "" && set.When != "lora" && set.When != "full" {
			t.Errorf("%s: %q", where, set.When)
		}
	}
	for _, preset := range presets() {
		if !slices.Contains(names, preset.Name) || preset.Program == "" {
			t.Errorf("preset %q of %q", preset.Name, preset.Program)
		}
		for _, set := range preset.Sets {
			check(preset.Name, set)
			if set.Source == "" {
				t.Errorf("%s: %s has no source", preset.Name, set.Field)
			}
		}
	}
	for _, file := range files()[1:] {
		if !slices.Contains(names, file.Preset) || len(file.Marks) == 0 {
			t.Errorf("a file of %q", file.Preset)
		}
		for key, values := range file.Keys {
			for value, sets := range values {
				for _, set := range sets {
					check(file.Preset+" "+key+" "+value, set)
				}
			}
		}
	}
}

// FuzzTrainerFile: any file is read or refused, and a file that is read gives a workload.
func FuzzTrainerFile(f *testing.F) {
	for _, text := range []string{
		"finetuning_type: lora\nlora_rank: 16\nbf16: true\n", "base_model: a\nfsdp_version: 2\nadapter: null\n",
		"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", `{"output_dir": "o", "gradient_accumulation_steps": 4}`,
		"a: &x [1]\nb: *x\n", "output_dir: [a, [b]]\n? {}\n: 1\n", "tuner_type: full\n<<: {max_length: 1}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		workload := costmodel.Workload{Preset: path, Batch: 1, MicroBatches: 1}
		notes, err := applyPreset(&workload, func(string) bool { return false })
		switch {
		case err != nil && err.Error() == "":
			t.Error("an error without words")
		case err == nil && strings.ContainsAny(workload.Preset, "/.\\"):
			t.Errorf("%q is still a file: %q", workload.Preset, notes)
		}
		for _, note := range notes {
			if strings.ContainsAny(note, "\x00\x1b\n") {
				t.Errorf("%q is printed as it came", note)
			}
		}
	})
}

// TestDefaultPreset: a training without a preset has the code path of Transformers' Trainer if
// Accelerate runs the strategy. The flags of a row read back as the same row.
func TestDefaultPreset(t *testing.T) {
	graph := fixtures.Must(ReadModel("llama-3.2-1b"))(t)
	for words, want := range map[string]string{
		"--mode train": "transformers", "--mode train --strategy ddp": "transformers", "--mode train --strategy fsdp": "transformers",
		"--mode train --strategy hsdp": "transformers", "--mode train --strategy zero3": "transformers", "--mode train --preset auto": "transformers",
		"--mode train --strategy ddp --runtime lightning": "", "--mode train --runtime devmap": "", "--mode infer": "", "--mode load": "",
		"--mode train --strategy pipeline --batch 8 --micro-batches 8": "", "--mode train --strategy fsdp --recompute selective": "",
		"--mode train --loss-only=false": "", "--mode train --preset accelerate-loop": "", "--mode train --strategy fsdp --preset accelerate-loop": "",
		"--preset transformers --strategy fsdp --batch 1": "transformers", "--preset llamafactory --lora-rank 0 --batch 1": "llamafactory",
	} {
		request := parsed(t, "plan", strings.Fields(words)...)
		asked := fixtures.Must(request.Workload())(t)
		asked.World = 8
		got, err := estimate.Resolve(graph, asked)
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		if got.Preset != want {
			t.Errorf("%s: preset %q, not %q", words, got.Preset, want)
		}
		if got.Strategy == costmodel.DeviceMap && got.LossOnly != (want == "transformers") {
			t.Errorf("%s: loss_only is %v", words, got.LossOnly)
		}
		again := fixtures.Must(parsed(t, "plan", Flags(&asked)...).Workload())(t)
		again.World = 8
		if back, err := estimate.Resolve(graph, again); err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s reads back from %q as %+v (%v)", words, Flags(&asked), back, err)
		}
	}
}

// TestPresetOverPlan: values that depend on a plan's strategy are open again with another strategy.
// An old plan of a loop stays a loop.
func TestPresetOverPlan(t *testing.T) {
	plan := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Runtime: "accelerate", Recompute: "none", Preset: "transformers", LossOnly: true}
	old := plan
	old.Preset, old.LossOnly = "", false
	for _, c := range []struct {
		plan     costmodel.Workload
		words    []string
		preset   string
		lossOnly bool
	}{
		{plan, []string{"--batch", "2"}, "transformers", true},
		{plan, []string{"--runtime", "devmap"}, "auto", false},
		{plan, []string{"--mode", "infer"}, "auto", false},
		{plan, []string{"--mode", "train", "--preset", "accelerate-loop"}, "", false},
		{old, []string{"--mode", "train"}, "", false},
		{old, []string{"--strategy", "fsdp"}, "", false},
	} {
		if got := parsed(t, "check", c.words...).over(c.plan); got.Preset != c.preset || got.LossOnly != c.lossOnly {
			t.Errorf("%q over a plan of preset %q: %q, loss_only %v", c.words, c.plan.Preset, got.Preset, got.LossOnly)
		}
	}
}

// presetOf returns a workload with a trainer's file, and the notes or the error.
func presetOf(t *testing.T, text string) (workload costmodel.Workload, said string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	workload = costmodel.Workload{Preset: path, Batch: 1, MicroBatches: 1}
	notes, err := applyPreset(&workload, func(string) bool { return false })
	if err != nil {
		return workload, err.Error()
	}
	return workload, strings.Join(notes, "\n")
}

// TestSilentKeys: a note names each key that the program ignores without a message, with the key
// that it needs or that was meant. Such a key sets nothing.
func TestSilentKeys(t *testing.T) {
	for text, want := range map[string]string{
		"output_dir: o\nfsdp_config: {activation_checkpointing: true}\n":                                   "fsdp_config changes nothing without fsdp: true",
		"output_dir: o\nfsdp: false\nfsdp_config: {fsdp_version: 2}\n":                                     "fsdp_config changes nothing without fsdp: true",
		"compute_environment: L\ndistributed_type: MULTI_GPU\nfsdp_config: {fsdp_version: 2}\n":            "fsdp_config changes nothing without distributed_type: FSDP",
		"output_dir: o\nfsdp: true\nfsdp_config: {activation_checkpoint: true}\n":                          "did you mean fsdp_config.activation_checkpointing?",
		"output_dir: o\nfsdp: true\nfsdp_confg: {version: 2}\n":                                            "did you mean fsdp_config.version?",
		"compute_environment: L\ndistributed_type: FSDP\nfsdp_config: {fsdp_reshard_after_forwards: true}": "did you mean fsdp_config.fsdp_reshard_after_forward?",
		"output_dir: o\ngradient_checkpoint: true\n":                                                       "did you mean gradient_checkpointing?",
		"output_dir: o\noptim: adamw_torch_fuse\n":                                                         "did you mean adamw_torch_fused?",
		"output_dir: o\nfsdp: full_shrd\n":                                                                 "did you mean full_shard?",
	} {
		workload, said := presetOf(t, text)
		if !strings.Contains(said, want) || workload.Recompute == costmodel.RecomputeFull {
			t.Errorf("%q: %q (recompute %s), not %q", text, said, workload.Recompute, want)
		}
	}
}

// TestRefusedKeys: a setting that devmap does not count is an error that names what to do. An
// unknown key is named with the most similar one.
func TestRefusedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"stage: dpo\nfinetuning_type: lora\n":                                                                           "devmap counts DPO as --preset trl-dpo",
		"base_model: a\nrl: dpo\n":                                                                                      "devmap counts DPO as --preset trl-dpo",
		"tuner_type: lora\nrlhf_type: dpo\n":                                                                            "devmap counts DPO as --preset trl-dpo",
		"dataset_name: a\nmodel_name_or_path: b\nbeta: 0.1\n":                                                           "devmap counts DPO as --preset trl-dpo",
		"stage: sft\nuse_dora: true\n":                                                                                  "use_dora is \"true\"",
		"stage: sft\nuse_galore: true\n":                                                                                "the nearest optimizer is --optimizer adafactor",
		"stage: sft\nuse_unsloth: true\n":                                                                               "use_unsloth: false",
		"base_model: a\ntorch_compile: true\n":                                                                          "torch_compile: false",
		"base_model: a\nplugins: [x.cut_cross_entropy.CutPlugin]\n":                                                     "(--loss fused)",
		"base_model: a\nfsdp_version: 1\n":                                                                              "fsdp_version: 2",
		"base_model: a\nfsdp_config: {offload_params: true}\n":                                                          "add fsdp_version: 2",
		"base_model: a\nfsdp_version: 2\nfsdp_config: {reshard_after_forward: false}\n":                                 "which devmap does not count",
		"output_dir: o\nfp16: true\nbf16: true\n":                                                                       "fp16 and bf16 are both true",
		"model: {_component_: qlora_a}\ntokenizer: {_component_: a}\n":                                                  "--preset torchtune --lora-rank 8 --quantize nf4",
		"model: {_component_: x.qlora_a}\n":                                                                             "--quantize nf4",
		"model: {_component_: a}\ncompile: True\n":                                                                      "compile: False",
		"model: {_component_: a}\nfsdp_cpu_offload: True\n":                                                             "--offload cpu",
		"distributed_type: MEGATRON_LM\ndowncast_bf16: a\n":                                                             "devmap reads FSDP, MULTI_GPU, NO and DEEPSPEED",
		"output_dir: o\nper_device_batch_size: 1\n":                                                                     "did you mean per_device_train_batch_size?",
		"output_dir: o\ngrad_checkpointing: true\n":                                                                     "did you mean gradient_checkpointing?",
		"dataset_name: a\nmodel_name_or_path: b\nlora_r: 8\n":                                                           "lora_r changes nothing without use_peft: true",
		"base_model: a\nlora_r: 8\n":                                                                                    "lora_r changes nothing without adapter: lora",
		"base_model: a\nadapter: lora\n":                                                                                "without lora_r, which PEFT needs",
		"base_model: a\nfp16: true\n":                                                                                   "which PyTorch's GradScaler refuses",
		"base_model: a\nadapter: lora\nlora_r: 4\nload_in_8bit: true\nbf16: false\n":                                    "use bf16: true or fp16: true",
		"base_model: a\ntensor_parallel_size: 2\n":                                                                      "tensor_parallel_size: 1 with fsdp_version: 2",
		"base_model: a\ncontext_parallel_size: 2\n":                                                                     "context_parallel_size: 1 with the same tokens",
		"base_model: a\nadapter: lora\nlora_r: 4\nlora_modules_to_save: [embed]\n":                                      "devmap counts adapters alone",
		"stage: sft\nadditional_target: embed_tokens\n":                                                                 "devmap counts adapters alone",
		"stage: sft\nuse_muon: true\n":                                                                                  "--optimizer muon",
		"output_dir: o\nfsdp: true\ndeepspeed: {zero_optimization: {stage: 3}}\n":                                       "fsdp and deepspeed are both set",
		"output_dir: o\nfsdp: true\ndeepspeed: a.json\n":                                                                "fsdp and deepspeed are both set",
		"output_dir: o\nfsdp: true\ngradient_checkpointing: true\nfsdp_config: {activation_checkpointing: true}\n":      "set gradient_checkpointing: false",
		"dataset_name: a\nmodel_name_or_path: b\nfsdp: true\nfsdp_config: {activation_checkpointing: true}\n":           "set gradient_checkpointing: false",
		"base_model: a\nfsdp_version: 2\ngradient_checkpointing: true\nfsdp_config: {activation_checkpointing: true}\n": "set gradient_checkpointing: false",
		"distributed_type: FSDP\ndowncast_bf16: a\nfsdp_config: {fsdp_version: 2}\n" + replicate + "-1}\n":              "it must be a whole number from 1 on",
		"distributed_type: FSDP\ndowncast_bf16: a\nfsdp_config: {fsdp_version: 2}\n" + replicate + "0}\n":               "it must be a whole number from 1 on",
		"distributed_type: FSDP\ndowncast_bf16: a\nfsdp_config: {fsdp_version: 2}\n" + replicate + "two}\n":             "it must be a whole number from 1 on",
		"distributed_type: MULTI_GPU\ndowncast_bf16: a\n" + replicate + "2}\n":                                          "use distributed_type: FSDP",
		"base_model: a\nmicro_batch_size: 1\ndp_replicate_size: 2\n":                                                    "add fsdp_version: 2 with fsdp_config",
		"dataset_name: a\nmodel_name_or_path: b\npacking_strategy: wrapped\n":                                           "packing_strategy changes nothing without packing: true",
		"base_model: a\nval_set_size: 0.1\n":                                                                            "axolotl evaluates nothing between steps",
	} {
		workload, said := presetOf(t, text)
		if !strings.Contains(said, want) || workload.LoRARank == 8 && strings.Contains(text, "lora_r:") {
			t.Errorf("%q: %q, not %q", text, said, want)
		}
	}
}

const replicate = "parallelism_config: {parallelism_config_dp_replicate_size: "

// TestReadKeys: the workloads of keys that depend on each other.
func TestReadKeys(t *testing.T) {
	const lora = "base_model: a\nadapter: lora\nlora_r: 4\n"
	const trl = "dataset_name: a\nmodel_name_or_path: b\n"
	const evaluates = "base_model: a\nmicro_batch_size: 3\nval_set_size: 0.1\n"
	for _, is := range []struct {
		text string
		want costmodel.Workload
	}{
		{"base_model: a\nbf16: false\n", costmodel.Workload{Precision: costmodel.FP32True}},
		{"base_model: a\nbf16: false\nfsdp_version: 2\n", costmodel.Workload{Precision: costmodel.FP32True}},
		{lora + "bf16: false\nfp16: true\n", costmodel.Workload{Precision: costmodel.FP16Mixed}},
		{trl + "bf16: false\nfp16: true\n", costmodel.Workload{Precision: costmodel.FP16Mixed, Loss: "tiled"}},
		{trl + "packing: true\npacking_strategy: wrapped\n", costmodel.Workload{Precision: costmodel.BF16Mixed, Packing: "wrapped", Loss: "tiled"}},
		{trl + "packing_strategy: wrapped\n", costmodel.Workload{Precision: costmodel.BF16Mixed, Loss: "tiled"}},
		{trl + "use_liger_kernel: true\n", costmodel.Workload{Precision: costmodel.BF16Mixed, Liger: true, Loss: "tiled"}},
		{evaluates + "evals_per_epoch: 4\neval_batch_size: 32\n", costmodel.Workload{Precision: costmodel.BF16True, EvalBatch: 32}},
		{evaluates + "evals_per_epoch: 1\nnum_epochs: 3\n", costmodel.Workload{Precision: costmodel.BF16True, EvalBatch: 3}},
		{evaluates + "evals_per_epoch: 1\n", costmodel.Workload{Precision: costmodel.BF16True}},
		{evaluates + "eval_batch_size: 32\n", costmodel.Workload{Precision: costmodel.BF16True}},
		{"base_model: a\nval_set_size: 0.0\neval_batch_size: 32\neval_steps: 5\n", costmodel.Workload{Precision: costmodel.BF16True}},
		{"base_model: a\ntest_datasets: [{path: b}]\neval_batch_size: 32\neval_steps: 5\n", costmodel.Workload{Precision: costmodel.BF16True, EvalBatch: 32}},
	} {
		got, said := presetOf(t, is.text)
		if got.Precision != is.want.Precision || got.Packing != is.want.Packing || got.Liger != is.want.Liger || got.Loss != is.want.Loss || got.EvalBatch != is.want.EvalBatch {
			t.Errorf("%q: %+v (%s), want %+v", is.text, got, said, is.want)
		}
	}
}

// TestPresetNotes: a note is printed only if it is true.
func TestPresetNotes(t *testing.T) {
	for _, is := range []struct {
		words, part string
		said        bool
	}{
		{"--mode train --lora-rank 0", "all weights are trained: --lora-rank 16", true},
		{"--mode train", "all weights are trained", false},
		{"--mode train --lora-rank 8 --lora-targets q_proj", "all weights are trained", false},
		{"--preset ms-swift", "counts as a label", true},
		{"--preset ms-swift --label-tokens 100", "counts as a label", false},
		{"--preset ms-swift --micro-batches 4 --batch 4", "gradient accumulation is", false},
		{"--preset ms-swift", "gradient accumulation is", true},
		{"--preset llamafactory", "bf16: false", true},
		{"--preset llamafactory --precision bf16-mixed", "bf16: false", false},
		{"--preset llamafactory --lora-rank 8 --strategy fsdp", "gathers the whole model", true},
		{"--preset llamafactory --lora-rank 8 --strategy ddp", "gathers the whole model", false},
		{"--preset llamafactory --lora-rank 0 --strategy fsdp", "gathers the whole model", false},
		{"--preset axolotl --lora-rank 8", "axolotl's kernels", true},
		{"--preset axolotl", "axolotl's kernels", false},
		{"--preset torchtune", "accumulates 8", false},
		{"--preset torchtune --lora-rank 8", "accumulates 8", true},
	} {
		request := parsed(t, "plan", strings.Fields(is.words)...)
		workload, err := request.Workload()
		if err != nil {
			t.Fatalf("%s: %v", is.words, err)
		}
		workload.LoRATargets = []string{"q_proj"}
		if said := strings.Contains(strings.Join(request.IdleNotes(&workload), "\n"), is.part); said != is.said {
			t.Errorf("%s: %q is printed: %v", is.words, is.part, said)
		}
	}
	request := parsed(t, "plan", strings.Fields("--preset ms-swift --lora-rank 8")...)
	workload := fixtures.Must(request.Workload())(t)
	if notes := strings.Join(request.IdleNotes(&workload), "\n"); strings.Contains(notes, "PEFT's default") {
		t.Errorf("the preset sets the targets: %s", notes)
	}
}

// TestPresetHints: an error begins with what works.
func TestPresetHints(t *testing.T) {
	for words, want := range map[string]string{
		"--label-tokens 0": "a step without labels trains nothing",
		"--lengths 600":    "give MEAN,MAX in tokens",
	} {
		if _, err := parsed(t, "plan", strings.Fields(words)...).Workload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if err := flagNamed("preset").check("trl-stf"); err == nil || !strings.HasPrefix(err.Error(), `--preset "trl-stf" is unknown: did you mean trl-sft?`) {
		t.Error(err)
	}
	request := parsed(t, "plan", strings.Fields("--preset transformers --optimizer sgd")...)
	if _, err := request.Workload(); err != nil || request.Implied != "" {
		t.Errorf("the preset trains, and %q implies it: %v", request.Implied, err)
	}
}
