package emit_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
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

// TestJobOneGPU: FSDP on one GPU needs a process group, which torchrun makes.
func TestJobOneGPU(t *testing.T) {
	for world, want := range map[int64]string{1: "torchrun --standalone --nproc_per_node 1 -m trl.scripts.sft", 2: "trl sft --config"} {
		input := golden(t, "job-trl")
		w := &input.Plan.Workload
		w.Strategy, w.World, w.ShardDegree = costmodel.FSDP, world, world
		input.Plan.Topology.Devices = input.Plan.Topology.Devices[:1]
		if command, _ := target(t, "trl").Usage(input, "sft.yaml"); !strings.HasPrefix(command, want) {
			t.Errorf("%d GPUs: %s", world, command)
		}
	}
}

// TestJobDeviceMap: TRL's file has the map of a plan with one, in one process without a launcher.
func TestJobDeviceMap(t *testing.T) {
	input := golden(t, "job-trl")
	input.Plan.Workload.Strategy, input.Plan.Workload.World, input.Plan.DeviceMap = costmodel.DeviceMap, 0, golden(t, "device-map").Plan.DeviceMap
	for i := range input.Plan.DeviceMap {
		input.Plan.DeviceMap[i].Device = devicemap.Device(i % 2) // none is on the CPU
	}
	text := fixtures.Must(written(target(t, "trl"), input))(t)
	var read struct {
		Kwargs struct {
			Map map[string]any `yaml:"device_map"`
		} `yaml:"model_init_kwargs"`
	}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || len(read.Kwargs.Map) != len(input.Plan.DeviceMap) {
		t.Errorf("%v, %d units of %d in\n%s", err, len(read.Kwargs.Map), len(input.Plan.DeviceMap), text)
	}
	for _, entry := range input.Plan.DeviceMap {
		if got := read.Kwargs.Map[entry.Key]; got != int(entry.Device) {
			t.Errorf("%s is on %v, want %d", entry.Key, got, entry.Device)
		}
	}
	if command, _ := target(t, "trl").Usage(input, "sft.yaml"); command != "python3 -m trl.scripts.sft --config sft.yaml" {
		t.Error(command)
	}
}

// samples set a field to different values; each that a target takes must make another
// file, or another note.
func samples(field costmodel.Field) (sets map[string]func(*costmodel.Workload)) {
	sets = make(map[string]func(*costmodel.Workload))
	for _, value := range field.Values {
		sets[value] = func(w *costmodel.Workload) { field.Set(w, value) }
	}
	if len(sets) > 0 {
		return sets
	}
	put := func(value any) func(*costmodel.Workload) {
		return func(w *costmodel.Workload) { reflect.ValueOf(field.Ref(w)).Elem().Set(reflect.ValueOf(value)) }
	}
	switch field.Ref(&costmodel.Workload{}).(type) {
	case *int64: // of four GPUs, and of a batch of four
		sets["2"], sets["4"] = put(int64(2)), put(int64(4))
	case *float64:
		sets["1/4"], sets["1/2"] = put(0.25), put(0.5)
	case *bool:
		sets["false"], sets["true"] = put(false), put(true)
	case *[]string:
		sets["k"], sets["q,v"] = put([]string{"k_proj"}), put([]string{"q_proj", "v_proj"})
	}
	return sets
}

// unsaid are fields that make neither a key nor a note, and why: everywhere, or
// TARGET/FIELD and STRATEGY/FIELD.
var unsaid = map[string]string{
	"mode": "other modes are refused", "strategy": "others are other cases here", "runtime": "it follows from the target", "preset": "others are refused or are other cases here",
	"new_tokens": "training generates nothing but in GRPO", "schedule": "a pipeline's", "virtual_stages": "a pipeline's", "dp": "a pipeline's", "tp": "a pipeline's", "cp": "a pipeline's", "ep": "a pipeline's", "pp": "a pipeline's", "sequence_parallel": "a pipeline's", "expert_capacity": "a pipeline's", "uniform": "a pipeline's", "mem_fraction": "JAX's pool",
	"kernels":             "the packages that are installed",
	"offload_activations": "devmap's engine alone has it",
	"loss_only":           "the programs keep the loss alone in any case", "ddp/built_on": "FSDP2 alone prepares a model", "zero1/built_on": "FSDP2 alone prepares a model",
	"zero2/built_on": "FSDP2 alone prepares a model", "zero3/built_on": "FSDP2 alone prepares a model", "ddp/shard_degree": "DDP has no shards",
	"zero1/lora_precision": "DeepSpeed casts adapters", "zero2/lora_precision": "DeepSpeed casts adapters", "zero3/lora_precision": "DeepSpeed casts adapters",
	"fsdp/gradient_as_bucket_view": "DDP's buckets", "hsdp/gradient_as_bucket_view": "DDP's buckets", "zero1/gradient_as_bucket_view": "DDP's buckets",
	"zero2/gradient_as_bucket_view": "DDP's buckets", "zero3/gradient_as_bucket_view": "DDP's buckets",
	"ddp/offload": "FSDP's host memory", "zero1/offload": "DeepSpeed's section has it", "zero2/offload": "DeepSpeed's section has it", "zero3/offload": "DeepSpeed's section has it",
	"lightning/batch": "the DataLoader has it, as the note says", "lightning/seq": "the DataLoader has it, as the note says",
	"accelerate-config/batch": "SCRIPT has it, as the note says", "accelerate-config/seq": "SCRIPT has it, as the note says", "transformers/seq": "SCRIPT has it, as the note says",
	"deepspeed/seq": "the caller of deepspeed.initialize has it", "deepspeed/precision": "its fp16 section is 16-mixed and 16-true",
	"torchtune/built_on": "torchtune makes its model on the meta device",
	"lightning/built_on": "Accelerate prepares a model there, Lightning does not",
}

// pythonBoolean is a text without quotes that YAML 1.1 has for a boolean.
var pythonBoolean = regexp.MustCompile(`(?mi): (no|yes|on|off)$`)

// TestJobSaysAll: what a plan sets and a job's file does not have is in a note. Each
// two values of a field differ in the file, or in the notes.
func TestJobSaysAll(t *testing.T) {
	fields := costmodel.Fields()
	all := make(map[string]map[string]func(*costmodel.Workload))
	for _, field := range fields {
		all[field.Name] = samples(field)
	}
	all["lengths"] = map[string]func(*costmodel.Workload){"": func(*costmodel.Workload) {}, "10,20": func(w *costmodel.Workload) { _ = w.Lengths.Read("", []byte("10,20")) }}
	all["offload"] = map[string]func(*costmodel.Workload){"": func(*costmodel.Workload) {}, "cpu": func(w *costmodel.Workload) { w.HostShards = true }}
	for _, c := range []struct{ target, preset, strategies string }{
		{"transformers", "transformers", "ddp fsdp zero1 zero2 zero3"},
		{"trl", "trl-sft", "ddp fsdp zero1 zero2 zero3"},
		{"llamafactory", "llamafactory", "ddp fsdp zero2 zero3"},
		{"axolotl", "axolotl", "ddp fsdp zero2 zero3"},
		{"lightning", "lightning", "ddp fsdp"},
		{"lightning", "lightning:model-parallel", "fsdp"},
		{"torchtune", "torchtune", "fsdp"},
		{"accelerate-config", "transformers", "ddp fsdp hsdp"},
		{"accelerate-config", "transformers:fsdp1", "fsdp"},
		{"deepspeed", "transformers", "zero1 zero2 zero3"},
	} {
		for _, strategy := range strings.Fields(c.strategies) {
			for _, rank := range []int64{0, 8} {
				for field, sets := range all {
					reason := cmp.Or(unsaid[field], unsaid[c.target+"/"+field], unsaid[strategy+"/"+field])
					if reason != "" || rank == 0 && strings.HasPrefix(field, "lora_") && field != "lora_rank" {
						continue
					}
					outputs := make(map[string]string)
					for _, value := range slices.Sorted(maps.Keys(sets)) {
						input := golden(t, cmp.Or(map[string]string{"deepspeed": "zero3"}[c.target], "job-"+c.target))
						w := &input.Plan.Workload
						w.Preset, w.Strategy, w.Batch, w.MicroBatches, w.World, w.ShardDegree = c.preset, costmodel.Strategy(strategy), 4, 1, 4, 4
						w.LoRARank, w.LoRATargets, w.LoRAPrecision = rank, nil, ""
						if strings.HasPrefix(strategy, "zero") {
							w.Runtime = "deepspeed"
						}
						if rank > 0 {
							w.LoRATargets, w.LoRAPrecision = []string{"q_proj"}, "fp32"
						}
						w.Precision, w.StoredTypes = costmodel.BF16Mixed, false
						sets[value](w)
						text, err := written(target(t, c.target), input)
						if err != nil {
							continue // it is refused
						}
						if c.target == "axolotl" {
							followsAxolotl(t, text)
						}
						if bare := pythonBoolean.FindString(text); bare != "" {
							t.Errorf("%s, %s: Python reads%q as a boolean; %s is %q", c.target, strategy, bare, field, value)
						}
						text += fmt.Sprint(target(t, c.target).Outside(input.Plan))
						if other, is := outputs[text]; is {
							t.Errorf("%s, %s, %s, rank %d: %s is %q or %q in the same file with the same notes", c.target, c.preset, strategy, rank, field, other, value)
						}
						outputs[text] = value
					}
				}
			}
		}
	}
}

// TestJobHints: a refusal of a strategy names the files that have it.
func TestJobHints(t *testing.T) {
	for _, c := range []struct{ target, preset, strategy, runtime, want string }{
		{"accelerate-config", "transformers", "zero3", "deepspeed", "emit --for transformers, or emit --for deepspeed"},
		{"accelerate-config", "trl-sft", "zero2", "deepspeed", "emit --for trl, or emit --for deepspeed"},
		{"transformers", "transformers", "hsdp", "torch", "emit --for accelerate-config"},
		{"lightning", "lightning", "hsdp", "lightning", "plan it with strategy=ddp"},
	} {
		input := golden(t, "job-"+c.target)
		w := &input.Plan.Workload
		w.Preset, w.Strategy, w.Runtime = c.preset, costmodel.Strategy(c.strategy), c.runtime
		if err := target(t, c.target).Refuse(input.Plan, ""); err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
			t.Errorf("%s, %s: %v, want %s", c.target, c.strategy, err, c.want)
		}
	}
}

// TestJobFloat8: nothing in a file overwrites fp8, and the notes say how it is set.
func TestJobFloat8(t *testing.T) {
	for name, want := range map[string]string{
		"transformers": "accelerate launch --config_file", "trl": "--accelerate_config", "llamafactory": "trains without it", "lightning": "convert_to_float8_training", "axolotl": "", "accelerate-config": "",
	} {
		input := golden(t, "job-"+name)
		input.Plan.Workload.Float8, input.Plan.Workload.Precision = "tensorwise", costmodel.BF16Mixed
		text := fixtures.Must(written(target(t, name), input))(t)
		notes := fmt.Sprint(target(t, name).Outside(input.Plan))
		overwritten := name == "transformers" && strings.Contains(text, "bf16:") || name == "trl" && !strings.Contains(text, "bf16: false")
		if strings.Contains(notes, "float8") != (want != "") || !strings.Contains(notes, want) || overwritten {
			t.Errorf("%s: notes %s with\n%s", name, notes, text)
		}
	}
}
