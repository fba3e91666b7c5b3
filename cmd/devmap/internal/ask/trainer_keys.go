package ask

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// withoutFSDP removes the keys under fsdp_config if the program ignores them. It returns the
// missing key: fsdp (training_args.py, _process_fsdp_args), or distributed_type in accelerate's own
// file. Empty: no key is missing.
func (file *trainerFile) withoutFSDP(values map[string]string) (missing string) {
	if file.Keys["fsdp"] != nil && file.Keys["fsdp"]["true"] == nil { // axolotl needs only fsdp_version
		return ""
	}
	missing = "fsdp: true"
	off := slices.Contains(offValues, values["fsdp"]) || values["fsdp"] == "null"
	if _, has := file.Keys["distributed_type"]; has {
		missing, off = "distributed_type: FSDP", !strings.EqualFold(values["distributed_type"], "FSDP")
	} else if _, has := file.Keys["fsdp"]; !has {
		return ""
	}
	before := len(values)
	maps.DeleteFunc(values, func(key, _ string) bool { return off && strings.HasPrefix(key, "fsdp_config.") })
	if len(values) == before {
		return ""
	}
	return missing
}

// liger returns axolotl's plugin with all of its kernels, which devmap counts as Liger. It removes
// the key of the loss, which alone means a fused loss.
func (file *trainerFile) liger(values map[string]string) []presetSet {
	const loss = "liger_fused_linear_cross_entropy"
	for _, key := range []string{loss, "liger_rope", "liger_rms_norm", "liger_glu_activation"} {
		if file.Keys[loss] == nil || !strings.EqualFold(values[key], "true") {
			return nil
		}
	}
	delete(values, loss)
	return []presetSet{{Field: "liger", Value: "true", Source: loss}}
}

// isOn reports a setting that a file turns on.
func isOn(values map[string]string, key string) bool {
	value := strings.ToLower(values[key])
	return !slices.Contains(offValues, value) && value != "no" && value != "null"
}

// evaluates reports an evaluation between steps. It needs a strategy, and with axolotl also
// samples.
func (file *trainerFile) evaluates(values map[string]string) bool {
	on := func(key string) bool { return isOn(values, key) }
	if file.Preset == "axolotl" { // core/builders/base.py, _configure_save_and_eval_strategy
		return keepsSamples(values) && (on("eval_strategy") || on("evaluation_strategy") || on("eval_steps") || perEpoch(values))
	}
	return len(file.Evaluates) > 0 && (on("eval_strategy") || on("evaluation_strategy"))
}

// keepsSamples reports samples that axolotl reserves for evaluations.
func keepsSamples(values map[string]string) bool {
	size, err := strconv.ParseFloat(values["val_set_size"], 64)
	return err == nil && size > 0 || isOn(values, "test_datasets")
}

// perEpoch reports evals_per_epoch that becomes eval_steps: a fraction of all steps below 1
// (axolotl, utils/config/__init__.py, normalize_config).
func perEpoch(values map[string]string) bool {
	each, err := strconv.ParseFloat(values["evals_per_epoch"], 64)
	epochs, bad := strconv.ParseFloat(cmp.Or(values["num_epochs"], "1"), 64)
	return err == nil && bad == nil && each*epochs > 1
}

// evaluation returns the file's batch of an evaluation.
func (file *trainerFile) evaluation(values map[string]string) []presetSet {
	if !file.evaluates(values) || values[file.Evaluates[0]] == "" || values[file.Evaluates[0]] == "null" {
		return nil
	}
	return []presetSet{{Field: "eval_batch", Value: values[file.Evaluates[0]], Source: file.Evaluates[0]}}
}

// usualEvaluation returns the program's default batch of an evaluation, if devmap counts one.
func (file *trainerFile) usualEvaluation(values map[string]string) []presetSet {
	if !file.evaluates(values) {
		return nil
	}
	batch := cmp.Or(values[file.Evaluates[1]], file.Evaluates[1])
	return []presetSet{{Field: "eval_batch", Value: batch, Source: file.Evaluates[0], Under: []string{"ddp", "fsdp", "hsdp", "zero1", "zero2", "zero3"}}}
}

// switches lists keys that a program ignores unless another key is on. Sources:
// trl/trainer/model_config.py (get_peft_config), trl/trainer/sft_trainer.py (pack_dataset) and
// axolotl/loaders/model.py.
var switches = []struct{ preset, key, value, unread string }{
	{"trl-sft", "use_peft", "true", "lora_target_modules lora_dropout lora_r"},
	{"trl-sft", "packing", "true", "packing_strategy"},
	{"axolotl", "adapter", "lora", "lora_target_modules lora_target_linear lora_modules_to_save lora_dropout lora_r"},
}

// withoutSwitch removes the keys that a program ignores because of a switch, and returns a note for
// one of each. It also notes axolotl's samples that no evaluation reads.
func (file *trainerFile) withoutSwitch(values map[string]string) (notes []string) {
	for _, one := range switches {
		if file.Preset != one.preset || isOn(values, one.key) {
			continue
		}
		unread := ""
		for _, key := range strings.Fields(one.unread) {
			if _, has := values[key]; has {
				unread = key
				delete(values, key)
			}
		}
		if unread != "" {
			notes = append(notes, unread+" changes nothing without "+one.key+": "+one.value)
		}
	}
	if file.Preset == "axolotl" && keepsSamples(values) && !file.evaluates(values) {
		notes = append(notes, "axolotl evaluates nothing between steps without eval_strategy, eval_steps, or evals_per_epoch × num_epochs above 1")
	}
	return notes
}
