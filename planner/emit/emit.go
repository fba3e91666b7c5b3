// Package emit writes a plan in the form that an engine reads. An engine is one
// file here and its golden files: the file registers a target, and help,
// completion, errors, examples and tests follow.
package emit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// Target is the form in which one engine takes a plan.
type Target struct {
	Name string
	// Aliases are what people and other programs call it.
	Aliases []string
	// File is the default name of the file, JSON that of its JSON form; "" if it
	// has none.
	File, JSON string
	// Help is a paragraph of the command's help, for a target that needs one.
	Help string
	// Example are arguments of devmap plan: the target takes that plan. Run runs
	// the file, if it is a program.
	Example, Run string
	// Golden names the plans in testdata/plans whose files are committed.
	Golden []string
	// Config and Program tell that Write needs these fields of [Input].
	Config, Program bool

	// Write writes the engine's own file. A plan that the engine has no form for is
	// an error, and nothing is written.
	Write func(to io.Writer, input *Input) error
	// Usage tells how the engine reads the file that Write wrote, and runs what the
	// plan is for. note warns of what the engine would do elsewhere; "" if there is
	// nothing to say.
	Usage func(input *Input, file string) (usage, note string)
	// Caveat is what the plan's figures do not count of the model under the engine; nil: nothing.
	Caveat func(input *Input) string

	// Folder are all files of a job by their names: the one that Write writes, and
	// scripts that start it on one host or several. nil: the target has no job.
	// OnlyFolder: Write's file starts nothing without the others.
	Folder     func(input *Input) (map[string]string, error)
	OnlyFolder bool

	// Refuse says why the target does not take a plan of a model of a family, as far
	// as the plan tells. An unknown family is "". Outside lists the settings
	// of a plan that change memory and that neither the target's file nor its command
	// sets, with what the user does instead. Registering sets both.
	Refuse  func(plan *devicemap.Plan, family string) error
	Outside func(plan *devicemap.Plan) []costmodel.Message

	needs []need
	// file names the file of a plan; nil: File.
	file func(plan *devicemap.Plan) string
	// families are the model_types that the engine's program runs; nil: all.
	families []string
}

// Input is a plan, and what some targets need with it.
type Input struct {
	Plan    *devicemap.Plan
	Config  []byte           // the config.json of the plan's model
	Program *program.Program // the plan, compiled
	Output  string           // the file that Write's text is for; empty: standard output
	JSON    bool             // whether the JSON form is asked for
}

var targets []*Target

// register adds the target of a file, and makes it refuse what does not meet its
// needs.
func register(target *Target) *Target {
	write := target.Write
	target.Write = func(to io.Writer, input *Input) error {
		if err := target.Refuse(input.Plan, ""); err != nil {
			return err
		}
		return write(to, input)
	}
	target.Refuse, target.Outside = target.refuse, target.outside
	targets = append(targets, target)
	return target
}

// FileOf is the default name of a plan's file, or of its JSON form; "" if there is none.
func (target *Target) FileOf(input *Input) string {
	switch {
	case input.JSON:
		return target.JSON
	case target.file != nil:
		return target.file(input.Plan)
	}
	return target.File
}

func (target *Target) refuse(plan *devicemap.Plan, family string) error {
	if len(plan.Pipeline) > 0 && target.Name != "diffusers" && (target.Name != "xdit" || plan.Workload.Mode == costmodel.Train) {
		return ofDiffusion(plan)
	}
	for _, need := range target.needs {
		if err := need(plan); err != nil {
			return err
		}
	}
	// A model without a type, such as a model.json, is the user's own program's.
	if len(target.families) == 0 || family == "" || slices.Contains(target.families, family) {
		return nil
	}
	return refused("the plan for %q is of a model of type %s, which %s does not run: it runs %s", plan.Model.Name, quote.Comment(family), target.Name, strings.Join(target.families, " and "))
}

// Targets lists all targets, sorted by name.
func Targets() []*Target {
	return slices.SortedFunc(slices.Values(targets), func(a, b *Target) int { return cmp.Compare(a.Name, b.Name) })
}

// For finds the target of an engine.
func For(name string) (*Target, error) {
	var names []string
	for _, target := range Targets() {
		if target.Name == name {
			return target, nil
		}
		names = append(names, target.Name)
	}
	return nil, fmt.Errorf("unknown engine %q (built: %s)", name, strings.Join(names, ", "))
}

// need is what a target demands of a plan. Its error says what the plan is
// instead, and which setting helps.
type need func(plan *devicemap.Plan) error

// refusal is a plan that an engine has no form for.
type refusal struct{ costmodel.Message }

// Error implements error.
func (e *refusal) Error() string { return e.String() }

// Refused tells that the plan is valid, and that another target or plan is needed.
func (e *refusal) Refused() {}

// refused is a [refusal] of a text.
func refused(format string, args ...any) error { return &refusal{costmodel.Messagef(format, args...)} }

// ofDiffusion refuses the plan of a diffusion pipeline, and names a target for it.
func ofDiffusion(plan *devicemap.Plan) error {
	if plan.Workload.Mode == costmodel.Train {
		return refused("the plan for %q trains adapters of a diffusion pipeline, which a script of diffusers does: emit --for diffusers prints its command", plan.Model.Name)
	}
	engine := "diffusers"
	if len(plan.Devices) > 1 || len(plan.Topology.Devices) > 1 {
		engine = "xdit"
	}
	return refused("the plan for %q is of a diffusion pipeline, whose components run one after another: emit --for %s", plan.Model.Name, engine)
}

// deviceMap demands a map for one process that runs the GPUs in turn. The flat
// map of a pipeline has the same form and another meaning.
func deviceMap(plan *devicemap.Plan) error {
	strategy := plan.Workload.Strategy
	switch targets := gridTargets[plan.Workload.Runtime]; {
	case targets != "":
		return refused("the plan for %q counts the layers and processes of %s, which no other program has: emit --for %s", plan.Model.Name, plan.Workload.Runtime, targets)
	case strategy.Traits().Staged:
		return &refusal{costmodel.Messagef("the plan for %q is a pipeline's: its stages run side by side in %s (\"stages\" lists the units of each), and its peaks are theirs; one process with a device map runs the GPUs in turn and holds other bytes on each: plan that with %v", plan.Model.Name, pipelines(plan), costmodel.Set("strategy", costmodel.DeviceMap))}
	case len(plan.Phases) > 0:
		return ofDiffusion(plan)
	case len(plan.DeviceMap) == 0:
		return &refusal{costmodel.Messagef("the plan for %q has no device map, because its strategy is %s: start its program as it is, under devmap watch, or plan with %v", plan.Model.Name, strategy, costmodel.Set("strategy", costmodel.DeviceMap))}
	case severalHosts(plan):
		return refused("the plan for %q has GPUs of several hosts: one process runs a device map, on the GPUs of its host", plan.Model.Name)
	case plan.Workload.Mode == costmodel.Train && offloads(plan):
		return refused("the plan for %q trains units that are on the CPU or disk: Accelerate's hooks run them forward alone", plan.Model.Name)
	}
	return nil
}

func severalHosts(plan *devicemap.Plan) bool {
	hosts, _ := hostsOf(plan)
	return hosts > 1
}

// pipelines names what runs the plan's stages.
func pipelines(plan *devicemap.Plan) string {
	if plan.Workload.Runtime == costmodel.Devmap {
		return "devmap's own engine"
	}
	return "processes of torch.distributed.pipelining"
}

// stages demands the stages of a pipeline.
func stages(plan *devicemap.Plan) error {
	if plan.Workload.Strategy.Traits().Staged {
		return nil
	}
	return &refusal{costmodel.Messagef("the plan for %q is no pipeline's: its strategy is %s, which has no schedule; plan it with %v", plan.Model.Name, plan.Workload.Strategy, costmodel.Set("strategy", costmodel.Pipeline))}
}

// diffusion demands a diffusion pipeline.
func diffusion(plan *devicemap.Plan) error {
	if len(plan.Pipeline) > 0 {
		return nil
	}
	return refused("the plan for %q is of no diffusion pipeline: devmap plan takes a folder with a model_index.json", plan.Model.Name)
}

// training demands a training step, for a reason.
func training(reason string) need {
	return func(plan *devicemap.Plan) error {
		if plan.Workload.Mode == costmodel.Train {
			return nil
		}
		return &refusal{costmodel.Messagef("the plan for %q is not for training: %s; plan it with %v", plan.Model.Name, reason, costmodel.Set("mode", costmodel.Train))}
	}
}

// runtime demands a plan for one runtime. owner is the engine, remedy how to
// plan for it.
func runtime(name, owner string, remedy costmodel.Message) need {
	return func(plan *devicemap.Plan) error {
		if plan.Workload.Runtime == name {
			return nil
		}
		return &refusal{costmodel.Messagef("the plan for %q is not %s's: its strategy is %s under %s; %v", plan.Model.Name, owner, plan.Workload.Strategy, plan.Workload.Runtime, remedy)}
	}
}

// otherBytes warns of a plan for devmap's own engine, whose peaks are not those
// of the engine that reads the file.
func otherBytes(plan *devicemap.Plan, engine string) string {
	if plan.Workload.Runtime != costmodel.Devmap {
		return ""
	}
	return "the plan is for devmap's own engine: " + engine + " holds other bytes on each GPU"
}

// offloads reports whether a unit is on the CPU or disk.
func offloads(plan *devicemap.Plan) bool {
	for _, entry := range plan.DeviceMap {
		if entry.Device < 0 {
			return true
		}
	}
	return false
}

// Shell is a word that a POSIX shell reads as exactly this text.
func Shell(word string) string { return quote.Shell(word) }
