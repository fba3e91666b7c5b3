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

// contradicts refuses keys that do not go together.
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
		return contradictsAxolotl(values)
	}
	return cmp.Or(file.contradictsTrainer(values), contradictsSizes(values))
}

// hasDeepSpeed reports a configuration of DeepSpeed's: a file, or a section.
func hasDeepSpeed(values map[string]string) bool {
	return isOn(values, "deepspeed") || slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(key string) bool { return strings.HasPrefix(key, "deepspeed.") })
}

// contradictsAxolotl refuses what axolotl or PyTorch refuses.
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

// errBothRecompute refuses what recomputes twice.
func errBothRecompute(key string) error {
	return fmt.Errorf("gradient_checkpointing and %s are both true, which the Trainer refuses (transformers/trainer.py): set gradient_checkpointing: false", key)
}

// contradictsTrainer refuses what transformers' Trainer refuses of FSDP.
func (file *trainerFile) contradictsTrainer(values map[string]string) error {
	if _, has := file.Keys["fsdp"]; !has || !isOn(values, "fsdp") {
		return nil
	}
	if hasDeepSpeed(values) {
		return errors.New("fsdp and deepspeed are both set, which the Trainer refuses (transformers/trainer.py): leave out one of both")
	}
	usual := file.Preset == "trl-sft" && values["gradient_checkpointing"] == "" // trl/trainer/base_config.py
	for _, key := range []string{"fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing"} {
		// ms-swift sets gradient_checkpointing to false itself (arguments/sft_args.py).
		if isOn(values, key) && (usual || isOn(values, "gradient_checkpointing")) && file.Preset != "ms-swift" {
			return errBothRecompute(key)
		}
	}
	return nil
}

// sizeKeys are the degrees of accelerate config's parallelism_config.
var sizeKeys = []string{"parallelism_config.parallelism_config_dp_replicate_size", "parallelism_config.parallelism_config_dp_shard_size"}

// contradictsSizes refuses degrees below 1 and words (accelerate/parallelism_config.py,
// __post_init__), and degrees above 1 without FSDP2.
func contradictsSizes(values map[string]string) error {
	for _, key := range sizeKeys {
		value := values[key]
		if value == "" || value == "null" {
			continue
		}
		if number, err := strconv.ParseInt(value, 10, 32); err != nil || number < 1 {
			return fmt.Errorf("%s is %q, which Accelerate refuses: it must be a whole number from 1 on", key, value)
		}
		if value != "1" && !underFSDP2(values) {
			return fmt.Errorf("%s is %s, which devmap counts under FSDP2 alone: use distributed_type: FSDP with fsdp_version: 2, or leave it out", key, value)
		}
	}
	return nil
}

// underFSDP2 reports FSDP2 in accelerate config's file.
func underFSDP2(values map[string]string) bool {
	return strings.EqualFold(values["distributed_type"], "FSDP") && values["fsdp_config.fsdp_version"]+values["fsdp_config.version"] == "2"
}

// shards is how many GPUs a copy of the weights is spread over by accelerate config's
// parallelism_config. 0: it says nothing. All degrees together are the GPUs
// (accelerate/parallelism_config.py, _validate_accelerator).
func (read *trainerRead) shards(gpus int64) (degree int64, note string, err error) {
	copies, _ := strconv.ParseInt(read.values[sizeKeys[0]], 10, 32)
	degree, _ = strconv.ParseInt(read.values[sizeKeys[1]], 10, 32)
	if degree == 0 && copies < 2 || !underFSDP2(read.values) {
		return 0, "", nil
	}
	copies = max(1, copies)
	switch {
	case degree == 0 && gpus%copies != 0:
		return 0, "", out.Usagef("%s: %s is %d, which does not divide the %d GPUs", read.name, sizeKeys[0], copies, gpus)
	case degree == 0:
		degree = gpus / copies
		note = fmt.Sprintf("%s: Accelerate takes parallelism_config_dp_shard_size as 1 and refuses %d GPUs: this is planned with %d, so add parallelism_config_dp_shard_size: %d", out.OneLine(read.name), gpus, degree, degree)
	case copies*degree != gpus:
		return 0, "", out.Usagef("%s: dp_replicate_size %d × dp_shard_size %d is %d, not the %d GPUs: use parallelism_config_dp_shard_size: %d, or --gpus %d",
			read.name, copies, degree, copies*degree, gpus, max(1, gpus/copies), copies*degree)
	}
	if degree == 1 {
		return 0, "", out.Usagef("%s: Accelerate refuses parallelism_config_dp_shard_size: 1 under FSDP: use %d with one replica, or distributed_type: MULTI_GPU", read.name, gpus)
	}
	return degree, note, nil
}
