package ask

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// isSet returns a function that reports the fields that a preset does not change. These are fields
// that the flags or --ds-config set, and the strategy of some commands.
func isSet(request *Request, workload *costmodel.Workload) func(field string) bool {
	estimates := request.cmd.Name() == "estimate" && !request.Given("strategy") && request.work.DeepSpeed == nil
	if estimates {
		workload.Strategy = costmodel.Auto
	}
	return func(field string) bool {
		return given(request.cmd.Flags(), strings.ReplaceAll(field, "_", "-")) ||
			field == "strategy" && (request.cmd.Name() != "plan" || request.work.DeepSpeed != nil) ||
			configures(workload, field)
	}
}

// configures reports a field that --ds-config sets. Transformers fills in open and "auto" fields
// from its own arguments (transformers/integrations/deepspeed.py, trainer_config_process).
func configures(workload *costmodel.Workload, field string) bool {
	if workload.DeepSpeed == nil {
		return false
	}
	asked := &workload.DeepSpeed.Asked
	switch field {
	case "batch":
		return asked.MicroBatch > 0 || asked.TrainBatch > 0
	case "micro_batches":
		return asked.Accumulation > 0 || asked.TrainBatch > 0
	case "optimizer":
		return asked.Optimizer != ""
	case "precision":
		return asked.Section != ""
	}
	return false
}

// matchDeepSpeed compares DeepSpeed's configuration with a trainer's file as the Trainer does
// (transformers/integrations/deepspeed.py, fill_match). It refuses differences, and "auto" becomes
// the file's value.
func (set *presetting) matchDeepSpeed(request *Request) error {
	if set.workload.DeepSpeed == nil || set.file.file == nil || request == nil {
		return nil
	}
	if !request.Given("precision") {
		if err := set.matchSections(); err != nil {
			return err
		}
	}
	keys := set.file.file.Keys
	if keys["per_device_train_batch_size"] == nil && keys["micro_batch_size"] == nil || request.Given("batch") || request.Given("micro-batches") {
		return nil // the file has no TrainingArguments, or the flags set it
	}
	return set.matchBatches()
}

// matchBatches compares the batches, also if no key sets them.
func (set *presetting) matchBatches() error {
	asked := &set.workload.DeepSpeed.Asked
	usual := ""
	if i := slices.IndexFunc(set.sets, func(one presetSet) bool { return one.Field == "batch" }); i >= 0 {
		usual = set.sets[i].Value
	}
	key, micro := set.file.number("batch", usual)
	name, steps := set.file.number("micro_batches", "1")
	if set.file.file.Preset == "ms-swift" && name == "" { // it follows from the number of GPUs
		return nil
	}
	for _, one := range []struct {
		key, theirs string
		said, ours  int64
	}{
		{"train_micro_batch_size_per_gpu", cmp.Or(key, "per_device_train_batch_size"), asked.MicroBatch, micro},
		{"gradient_accumulation_steps", cmp.Or(name, "gradient_accumulation_steps"), asked.Accumulation, steps},
	} {
		if one.said > 0 && one.said != one.ours {
			return set.file.mismatch(one.key, one.theirs, fmt.Sprint(one.said), fmt.Sprint(one.ours))
		}
	}
	set.train, set.batch, asked.TrainBatch = asked.TrainBatch, micro*steps, 0
	return nil
}

// matchSections refuses sections of precision that differ from the file's. If a section is missing,
// Accelerate adds it, enabled (accelerate/utils/dataclasses.py,
// DeepSpeedPlugin.set_mixed_precision).
func (set *presetting) matchSections() error {
	asked := &set.workload.DeepSpeed.Asked
	kind, known := set.file.mixed()
	if !known {
		return nil
	}
	for _, one := range []struct{ name, enabled string }{{mixedBF16, asked.BF16}, {mixedFP16, asked.FP16}} {
		on := kind == one.name
		if one.enabled == "true" && !on || one.enabled == "false" && on {
			return set.file.mismatch(one.name+".enabled", one.name, one.enabled, fmt.Sprint(on))
		}
		if on && one.enabled == "absent" {
			asked.Section = ""
		}
	}
	return nil
}

// mixed returns the mixed precision that a file gives the Trainer: bf16, fp16 or none. known is
// false for ms-swift, which takes it from the weights.
func (read *trainerRead) mixed() (kind string, known bool) {
	values := read.values
	if read.file == nil || read.file.Keys["bf16"] == nil || strings.EqualFold(values["bf16"], "full") {
		return "", false
	}
	usual := "none" // TrainingArguments.bf16
	switch read.file.Preset {
	case "trl-sft", "axolotl": // trl/trainer/base_config.py; axolotl/utils/schemas/config.py, "auto"
		usual = mixedBF16
	case "ms-swift":
		usual = ""
	}
	off := strings.EqualFold(values["bf16"], "false")
	switch {
	case isOn(values, "fp16"):
		return mixedFP16, true
	case isOn(values, "bf16"):
		return mixedBF16, true
	case off && usual != "":
		return "none", true
	}
	return usual, usual != ""
}

const mixedBF16, mixedFP16 = "bf16", "fp16"

// number returns a whole number that a file sets, or the preset's default.
func (read *trainerRead) number(field, usual string) (key string, number int64) {
	key = read.source(field)
	value := cmp.Or(read.values[key], usual)
	number, _ = strconv.ParseInt(value, 10, 32)
	return key, number
}

// mismatch returns the error of a DeepSpeed value that differs from the file's.
func (read *trainerRead) mismatch(theirs, ours, said, is string) error {
	return out.Usagef("%s: DeepSpeed's %s is %s and the trainer's %s is %s, which the Trainer refuses (transformers/integrations/deepspeed.py): set %s to auto", read.name, theirs, said, ours, is, theirs)
}

// settle compares a file with the number of GPUs, and fills in values that follow from it.
func (set *presetting) settle(request *Request, workload *costmodel.Workload, gpus int64) (notes []string, err error) {
	if set.train > 0 && set.train != set.batch*gpus {
		return nil, set.file.mismatch("train_batch_size", fmt.Sprintf("batch of all %d GPUs (%d each)", gpus, set.batch), fmt.Sprint(set.train), fmt.Sprint(set.batch*gpus))
	}
	if set.file.file == nil || request.Given("strategy") || request.Given("shard-degree") {
		return nil, nil
	}
	degree, note, err := set.file.shards(gpus)
	if degree > 0 && degree < gpus && (workload.Strategy == costmodel.HSDP || workload.Strategy == costmodel.FSDP) {
		workload.ShardDegree = degree
	}
	if note != "" {
		notes = append(notes, note)
	}
	return notes, err
}

// configured returns the workload of the flags with the file of --ds-config. The file sets fields
// that the flags leave open, and its stage sets the strategy.
func (request *Request) configured() (costmodel.Workload, error) {
	name, text, err := deepSpeedOf(request)
	if text == nil || err != nil {
		return request.work, err
	}
	if err := request.work.ReadDeepSpeed(strings.TrimPrefix(name, "--ds-config "), text); err != nil {
		return request.work, err
	}
	work := request.work
	if !request.Given("batch") {
		work.Batch = 0
	}
	if !request.Given("micro-batches") {
		work.MicroBatches = 0
	}
	if !request.Given("optimizer") {
		work.Optimizer = ""
	}
	stage := costmodel.Strategy(fmt.Sprintf("zero%d", work.DeepSpeed.Stage))
	if request.Given("strategy") && work.Strategy != stage {
		return work, out.Usagef("--strategy %s contradicts %s, whose zero_optimization.stage is %d: --strategy %s works, or left out", work.Strategy, name, work.DeepSpeed.Stage, stage)
	}
	work.Strategy = stage
	return work, nil
}

// deepSpeedOf returns DeepSpeed's configuration: the file of --ds-config, or the section of a
// training program's file. text is nil if there is none.
func deepSpeedOf(request *Request) (name string, text []byte, err error) {
	if request.dsConfig != "" {
		text, err = modelgraph.ReadSmall(request.dsConfig, "a DeepSpeed configuration", maxConfigBytes)
		return "--ds-config " + request.dsConfig, text, err
	}
	if !isFile(request.work.Preset) {
		return "", nil, nil
	}
	read, err := readOnce(request, request.work.Preset)
	return read.name + ": deepspeed", read.inline, err
}

// readOnce is [readTrainerFile] with a cache in the request, which may be nil.
func readOnce(request *Request, name string) (trainerRead, error) {
	if request == nil {
		return readTrainerFile(name)
	}
	if request.trainer != nil {
		return *request.trainer, nil
	}
	read, err := readTrainerFile(name)
	if err == nil {
		request.trainer = &read
	}
	return read, err
}
