// Package emit writes a plan in the form that an engine reads.
package emit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Target is the form in which one engine takes a placement.
type Target struct {
	Name string
	// Write writes the engine's own file. What the engine has no form for is an
	// error.
	Write func(to io.Writer, plan *devicemap.Plan) error
	// Usage is how the engine is told to read the file that Write wrote, and to
	// run what the plan is for. note is what it would make of the plan
	// elsewhere; "" where there is nothing to say.
	Usage func(plan *devicemap.Plan, file string) (usage, note string)
	// File is what the file may be called.
	File string
}

// targets are all, by name.
var targets = []Target{
	// Accelerate reads device_map: dispatch_model, and device_map= of
	// Transformers' from_pretrained.
	{"accelerate", deviceMap, transformers, "device_map.json"},
	// ms-swift reads the same object from the file that --device_map names
	// (swift/utils/utils.py: json_parse_to_dict).
	{"ms-swift", swiftFile, swift, "device_map.json"},
	// DeepSpeed reads its settings: deepspeed.initialize, Trainer's
	// deepspeed=, ms-swift's --deepspeed.
	{"deepspeed", deepSpeed, initialize, "ds_config.json"},
	// diffusers reads nothing: its pipelines are called.
	{"diffusers", diffusersCalls, diffusersUsage, "generate.py"},
	// xDiT's examples read flags (xfuser/config/args.py: xFuserArgs).
	{"xdit", xditFlags, xditUsage, "xdit.args"},
	// OpenPI's train.py takes no file: the environment and the flags.
	{"openpi", openPI, openPIUsage, "openpi.sh"},
	// torch's runtime of pipelines reads who does what, and when.
	{"torch-schedule", torchSchedule, torchRuntime, "schedule.csv"},
}

// Names lists the engines that there is a target for, sorted.
func Names() []string {
	names := make([]string, len(targets))
	for i := range targets {
		names[i] = targets[i].Name
	}
	slices.Sort(names)
	return names
}

// For finds the target of an engine.
func For(name string) (Target, error) {
	i := slices.IndexFunc(targets, func(target Target) bool { return target.Name == name })
	if i < 0 {
		return Target{}, fmt.Errorf("unknown engine %q (built: %s)", name, strings.Join(Names(), ", "))
	}
	return targets[i], nil
}

// refusal is a plan that an engine has no form for.
type refusal struct{ costmodel.Message }

// Error implements error.
func (e *refusal) Error() string { return e.String() }

// deviceMap is the plan's map alone: module path → number, "cpu" or "disk". A
// pipeline's flat map has the same form and another meaning.
func deviceMap(to io.Writer, plan *devicemap.Plan) error {
	strategy := plan.Workload.Strategy
	switch {
	case strategy.Traits().Staged:
		return &refusal{costmodel.Messagef("the plan for %q is a pipeline's: its stages run side by side in %s (\"stages\" lists the units of each), and its peaks are theirs; one process with a device map runs the GPUs in turn and holds other bytes on each: plan that with %v", plan.Model.Name, pipelines(plan), costmodel.Set("strategy", costmodel.DeviceMap))}
	case len(plan.Phases) > 0:
		return fmt.Errorf("the plan for %q is of a diffusion pipeline, whose components run one after another: emit --for diffusers or xdit", plan.Model.Name)
	case len(plan.DeviceMap) == 0:
		return fmt.Errorf("the plan for %q has no device map: its strategy is %s", plan.Model.Name, strategy)
	case plan.Workload.Mode == costmodel.Train && offloads(plan):
		return fmt.Errorf("the plan for %q trains units that are on the CPU or disk: Accelerate's hooks run them forward alone", plan.Model.Name)
	}
	return devicemap.WriteJSON(to, plan.DeviceMap)
}

// pipelines is what the plan's stages run in.
func pipelines(plan *devicemap.Plan) string {
	if plan.Workload.Runtime == costmodel.Devmap {
		return "devmap's own engine"
	}
	return "processes of torch.distributed.pipelining"
}
