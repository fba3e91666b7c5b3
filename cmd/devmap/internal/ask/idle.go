package ask

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// idleness is a case in which flags change nothing. The command accepts them with a note, so that
// one set of flags serves several modes and strategies.
type idleness struct {
	when func(workload *costmodel.Workload) bool
	why  string
}

var (
	noStep = &idleness{
		func(workload *costmodel.Workload) bool { return workload.Mode != costmodel.Train },
		"only --mode train has a step",
	}
	noMoments = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Train && !strings.HasPrefix(workload.Optimizer, "adamw")
		},
		"it is AdamW's",
	}
	nothingRuns = &idleness{
		func(workload *costmodel.Workload) bool { return workload.Mode == costmodel.Load },
		"under --mode load nothing runs",
	}
	noBuckets = &idleness{
		func(workload *costmodel.Workload) bool {
			traits := workload.Strategy.Traits()
			return workload.Mode == costmodel.Train && !traits.Open && (!traits.Replicated || traits.ZeroStage > 0)
		},
		"DDP alone has buckets",
	}
	lossAlways = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Train && !workload.Strategy.Traits().Sequential && !workload.Strategy.Traits().Open
		},
		"the loops of its engine keep the loss alone in any case",
	}
	notPrepared = &idleness{
		func(workload *costmodel.Workload) bool {
			traits := workload.Strategy.Traits()
			return workload.Mode == costmodel.Train && !traits.Open && (!traits.ByBlock || workload.Preset == "")
		},
		"FSDP2 alone prepares a model, in training programs",
	}
	completions = &idleness{
		func(workload *costmodel.Workload) bool { return workload.Preset == "trl-grpo" },
		"the labels are the completion, whose length is --new-tokens",
	}
	noSchedule = &idleness{
		func(workload *costmodel.Workload) bool {
			return !workload.Strategy.Traits().Staged && !workload.Strategy.Traits().Open && workload.Mode != costmodel.Load
		},
		"a pipeline alone has a schedule",
	}
	allAlike = &idleness{
		func(workload *costmodel.Workload) bool {
			return workload.Mode == costmodel.Infer && workload.Strategy.Traits().Staged
		},
		"without backward all schedules are one",
	}
)

// IdleNotes names the given flags that do not change the workload, and the adapters' targets if the
// user left them out.
func (request *Request) IdleNotes(workload *costmodel.Workload) []string {
	out := slices.Clone(request.presetNotes)
	for _, idle := range []*idleness{noStep, noMoments, nothingRuns, noBuckets, lossAlways, notPrepared, completions, noSchedule, allAlike} {
		if !idle.when(workload) {
			continue
		}
		var names []string
		for i := range flags {
			if slices.Contains(flags[i].idle, idle) && moved(request.cmd.Flags().Lookup(flags[i].name)) {
				names = append(names, flags[i].name)
			}
		}
		verb := " changes nothing here: "
		if len(names) > 1 {
			verb = " change nothing here: "
		}
		if len(names) > 0 {
			out = append(out, "--"+strings.Join(names, ", --")+verb+idle.why)
		}
	}
	if workload.Schedule == costmodel.AutoSchedule && workload.MicroBatches <= 1 && workload.Mode == costmodel.Train {
		out = append(out, "with one micro-batch, GPUs wait for each other in any order: --micro-batches N divides --batch into N parts that keep them busy")
	}
	if workload.Schedule == costmodel.AutoSchedule && workload.Recompute == costmodel.RecomputeNone && !request.Given("recompute") {
		out = append(out, "--schedule auto recomputes no block: --recompute auto adds the choice of blocks, and can find a shorter step if memory is short")
	}
	return append(out, targetNotes(request, workload)...)
}

// targetNotes names the modules with adapters if the user named none, and says that rank 0 has none.
func targetNotes(request *Request, workload *costmodel.Workload) []string {
	if workload.LoRARank == 0 && workload.Mode == costmodel.Train && request.Given("lora-rank") {
		return []string{"--lora-rank 0 has no adapters, so that all weights are trained: --lora-rank 16 trains adapters alone"}
	}
	if workload.LoRARank == 0 || len(workload.LoRATargets) == 0 || !request.Given("lora-rank") || request.Given("lora-targets") || presetSets(workload.Preset, "lora_targets") {
		return nil
	}
	return []string{fmt.Sprintf("--lora-targets is PEFT's default for this model: %s (--lora-targets all-linear adapts every linear layer but the head)", strings.Join(workload.LoRATargets, ","))}
}

// impliesTraining reports a flag that only training has, with a value that does not turn it off.
func impliesTraining(name, value string) bool {
	f := flagNamed(name)
	switch {
	case f == nil || slices.Contains(offValues, value):
		return false
	case name == "strategy": // in inference one GPU is enough for a whole model
		return costmodel.Strategy(value).Traits().Replicated
	}
	return name == "ds-config" || strings.HasPrefix(name, "lora-") || slices.Contains(f.idle, noStep)
}

// impliesInference reports a flag that only inference has.
func impliesInference(name, value string) bool {
	switch name {
	case "new-tokens", "offload":
		return !slices.Contains(offValues, value)
	case "objective":
		return value == string(planner.Latency)
	}
	return false
}

// implyTraining sets the mode to training if a flag implies it and the user gave no mode. It
// records the first such flag for a note.
func implyTraining(request *Request) {
	if commands[request.cmd.Name()]&working == 0 || request.Given("mode") {
		return
	}
	inference := false
	request.cmd.Flags().Visit(func(f *pflag.Flag) {
		inference = inference || impliesInference(f.Name, f.Value.String()) && (f.Name != "offload" || !offloadsStates(request))
		if request.Implied == "" && impliesTraining(f.Name, f.Value.String()) {
			request.Implied = "--" + f.Name
			if f.Name == "strategy" {
				request.Implied += " " + f.Value.String()
			}
		}
	})
	if inference {
		request.Implied = ""
	}
	if request.Implied != "" {
		request.work.Mode = costmodel.Train
	}
}

// moved reports a flag with a value other than its default.
func moved(f *pflag.Flag) bool { return f != nil && f.Changed && f.Value.String() != f.DefValue }

// Contradicted refuses flags that contradict the workload or the devices of a plan to simulate.
func (request *Request) Contradicted(plan *devicemap.Plan) error {
	if err := checkValues(request.cmd.Flags()); err != nil {
		return err
	}
	for i := range flags {
		f := &flags[i]
		if f.field == nil || !request.Given(f.name) {
			continue
		}
		given, planned := valueOf(f.field.Ref(&request.work)), valueOf(f.field.Ref(&plan.Workload))
		if f.name == "preset" && isFile(given) {
			read, err := readTrainerFile(given)
			if err != nil {
				return err
			}
			given = read.preset
		}
		if given != planned && given != string(costmodel.Auto) {
			return out.Usagef("--%s %s contradicts the plan, which is for --%s %s: leave it out, or plan again", f.name, cmp.Or(given, f.field.Default), f.name, cmp.Or(planned, f.field.Default))
		}
	}
	return request.otherDevices(plan)
}

// Idle refuses flags of a workload, of devices and of a plan for a program, which has its own.
func (request *Request) Idle() error {
	for i := range flags {
		f := &flags[i]
		ofPlan := f.field != nil || slices.Contains([]string{"gpus", "gpu", "topology", "reserve", "model", "schedule-file"}, f.name)
		if ofPlan && request.Given(f.name) {
			return out.Usagef("--%s is for a plan: a program says all that is run, and where", f.name)
		}
	}
	return nil
}

// valueOf formats the value that a field's pointer points to.
func valueOf(field any) string {
	value := reflect.ValueOf(field).Elem()
	if value.Kind() == reflect.Slice {
		texts := make([]string, value.Len())
		for i := range texts {
			texts[i] = fmt.Sprint(value.Index(i))
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(value)
}
