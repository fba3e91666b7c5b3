package ask

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// contradicts refuses keys that contradict each other.
func (file *trainerFile) contradicts(values map[string]string) error {
	on := func(key string) bool { return strings.EqualFold(values[key], "true") }
	version := values["fsdp_version"] + values["fsdp_config.fsdp_version"] + values["fsdp_config.version"]
	inFSDP := func(key string) bool { return strings.HasPrefix(key, "fsdp_config.") }
	switch {
	case on("fp16") && on("bf16"):
		return errors.New("fp16 and bf16 are both true: a program trains in one of them; set the other to false")
	case file.Preset == "axolotl" && version == "" && slices.ContainsFunc(slices.Collect(maps.Keys(values)), inFSDP):
		return errors.New("fsdp_config without fsdp_version is FSDP1, which devmap does not count under axolotl: add fsdp_version: 2")
	case file.Preset == "axolotl":
		return cmp.Or(contradictsAxolotl(values), file.contradictsSizes(values))
	}
	return cmp.Or(file.contradictsTrainer(values), file.contradictsSizes(values))
}

// hasDeepSpeed reports a DeepSpeed configuration: a file, or a section.
func hasDeepSpeed(values map[string]string) bool {
	return isOn(values, "deepspeed") || slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(key string) bool { return strings.HasPrefix(key, "deepspeed.") })
}

// contradictsAxolotl refuses keys that axolotl or PyTorch refuses.
func contradictsAxolotl(values map[string]string) error {
	adapter, whole := isOn(values, "adapter"), !hasDeepSpeed(values)
	half := isOn(values, "fp16") && !isOn(values, "bf16") || isOn(values, "fp16") && strings.EqualFold(values["bf16"], "auto")
	switch {
	case adapter && !isOn(values, "lora_r"):
		return fmt.Errorf("adapter is %q without lora_r, which PEFT needs: add lora_r: 16, or leave adapter out", values["adapter"])
	case half && whole && !adapter:
		return errors.New("fp16 in full training loads fp16 weights, which PyTorch's GradScaler refuses: use bf16: true, or neither")
	case isOn(values, "load_in_8bit") && strings.EqualFold(values["bf16"], "false") && !isOn(values, "fp16"):
		return errors.New("bf16: false with load_in_8bit loads fp16 without autocast, which devmap does not count: use bf16: true or fp16: true")
	case isOn(values, "gradient_checkpointing") && isOn(values, "fsdp_config.activation_checkpointing"):
		return errBothRecompute("fsdp_config.activation_checkpointing")
	}
	return nil
}

// errBothRecompute is the error of two settings that recompute the same.
func errBothRecompute(key string) error {
	return fmt.Errorf("gradient_checkpointing and %s are both true, which the Trainer refuses (transformers/trainer.py): set gradient_checkpointing: false", key)
}

// contradictsTrainer refuses FSDP keys that transformers' Trainer refuses.
func (file *trainerFile) contradictsTrainer(values map[string]string) error {
	if _, has := file.Keys["fsdp"]; !has || !isOn(values, "fsdp") {
		return nil
	}
	if hasDeepSpeed(values) {
		return errors.New("fsdp and deepspeed are both set, which the Trainer refuses (transformers/trainer.py): leave out one of both")
	}
	usual := file.Preset == "trl-sft" && values["gradient_checkpointing"] == "" // trl/trainer/base_config.py
	for _, key := range []string{"fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing"} {
		// ms-swift itself sets gradient_checkpointing to false (arguments/sft_args.py).
		if isOn(values, key) && (usual || isOn(values, "gradient_checkpointing")) && file.Preset != "ms-swift" {
			return errBothRecompute(key)
		}
	}
	return nil
}

// sizeKeys returns the keys of the data-parallel degrees in axolotl's file, or in accelerate
// config's parallelism_config.
func (file *trainerFile) sizeKeys() (copies, shards string) {
	copies, shards = "dp_replicate_size", "dp_shard_size"
	if file.Preset != "axolotl" {
		const section = "parallelism_config.parallelism_config_"
		copies, shards = section+copies, section+shards
	}
	return copies, shards
}

// contradictsSizes refuses degrees that are below 1 or not numbers
// (accelerate/parallelism_config.py, __post_init__), and degrees above 1 without FSDP2.
func (file *trainerFile) contradictsSizes(values map[string]string) error {
	copies, shards := file.sizeKeys()
	for _, key := range []string{copies, shards} {
		value := values[key]
		if value == "" || value == "null" {
			continue
		}
		if number, err := strconv.ParseInt(value, 10, 32); err != nil || number < 1 {
			return fmt.Errorf("%s is %q, which Accelerate refuses: it must be a whole number from 1 on", key, value)
		}
		switch {
		case value == "1" || file.underFSDP2(values):
		case file.Preset == "axolotl":
			return fmt.Errorf("%s is %s, which devmap counts under FSDP2 alone: add fsdp_version: 2 with fsdp_config, or leave it out", key, value)
		default:
			return fmt.Errorf("%s is %s, which devmap counts under FSDP2 alone: use distributed_type: FSDP with fsdp_version: 2, or leave it out", key, value)
		}
	}
	return nil
}

// underFSDP2 reports FSDP2 in a file.
func (file *trainerFile) underFSDP2(values map[string]string) bool {
	version := values["fsdp_config.fsdp_version"] + values["fsdp_config.version"]
	if file.Preset == "axolotl" {
		return values["fsdp_version"]+version == "2"
	}
	return strings.EqualFold(values["distributed_type"], "FSDP") && version == "2"
}

// shards returns the number of GPUs that share one copy of the weights, from the file's degrees; 0:
// the file gives none. The product of all degrees is the number of GPUs. Sources:
// accelerate/parallelism_config.py, _validate_accelerator; axolotl/utils/distributed.py,
// _get_parallel_config_kwargs, which computes a missing degree.
func (read *trainerRead) shards(gpus int64) (degree int64, note string, err error) {
	ofCopies, ofShards := read.file.sizeKeys()
	copies, _ := strconv.ParseInt(read.values[ofCopies], 10, 32)
	degree, _ = strconv.ParseInt(read.values[ofShards], 10, 32)
	if degree == 0 && copies < 2 || !read.file.underFSDP2(read.values) {
		return 0, "", nil
	}
	completes := read.file.Preset == "axolotl"
	if completes && read.values[ofCopies] == "" && gpus%degree == 0 {
		copies = gpus / degree
	}
	copies = max(1, copies)
	switch {
	case degree == 0 && gpus%copies != 0:
		return 0, "", out.Usagef("%s: %s is %d, which does not divide the %d GPUs", read.name, ofCopies, copies, gpus)
	case degree == 0 && completes:
		degree = gpus / copies
	case degree == 0:
		degree = gpus / copies
		note = fmt.Sprintf("%s: Accelerate takes parallelism_config_dp_shard_size as 1 and refuses %d GPUs: this is planned with %d, so add parallelism_config_dp_shard_size: %d", out.OneLine(read.name), gpus, degree, degree)
	case copies*degree != gpus:
		return 0, "", out.Usagef("%s: dp_replicate_size %d × dp_shard_size %d is %d, not the %d GPUs: use %s: %d, or --gpus %d",
			read.name, copies, degree, copies*degree, gpus, strings.TrimPrefix(ofShards, "parallelism_config."), max(1, gpus/copies), copies*degree)
	}
	if degree == 1 {
		return 0, "", out.Usagef("%s: Accelerate refuses %s: 1 under FSDP: use %d with one replica, or DDP", read.name, strings.TrimPrefix(ofShards, "parallelism_config."), gpus)
	}
	return degree, note, nil
}

// tuneTargets returns the modules with adapters in torchtune's recipe. One key lists those of
// attention, and another switches those of MLPs.
func (file *trainerFile) tuneTargets(values map[string]string) []presetSet {
	const key = "model.lora_attn_modules"
	if file.Keys[key] == nil || values[key] == "" {
		return nil
	}
	targets := strings.ReplaceAll(values[key], "output_proj", "o_proj")
	if strings.EqualFold(values["model.apply_lora_to_mlp"], "true") {
		targets += ",gate_proj,up_proj,down_proj"
	}
	return []presetSet{{Field: "lora_targets", Value: targets, Source: key}}
}
