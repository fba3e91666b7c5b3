// Package ask is what the command's flags ask for. A flag is one declaration in
// its table; parsing, help, completion, what lies over a plan file, what
// reproduces a row and what a hint prints are read off it. The library names
// fields, and they become flags here.
package ask

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Question is the problem that a command's flags define, and the way back: changes
// of it as flags of the command.
type Question struct {
	planner.Problem
	Options strategy.Options
	// Source is how the command line names a diffusion pipeline.
	Source string

	request *Request
}

// Smallest are the changes that make the problem fit, as flags.
func (asked *Question) Smallest(ctx context.Context) []strategy.Change {
	return asked.said(strategy.Smallest(ctx, asked.Problem, asked.Options))
}

// Next are the next-best changes from a value on, as flags.
func (asked *Question) Next(ctx context.Context, value float64) []strategy.Change {
	return asked.said(strategy.Next(ctx, asked.Problem, asked.Options, value))
}

// Alternatives are those of a map whose largest share one unit sets, as flags.
func (asked *Question) Alternatives(ctx context.Context, value float64) (fewer, lower []strategy.Change) {
	fewer, lower = strategy.Alternatives(ctx, asked.Problem, asked.Options, value)
	return asked.said(fewer), asked.said(lower)
}

// said are the changes that the command can be asked for, each once.
func (asked *Question) said(changes []strategy.Change) []strategy.Change {
	var out []strategy.Change
	words := map[string]bool{}
	for _, change := range changes {
		worded, ok := asked.Say(change)
		if text := fmt.Sprintf("%q %q %q", worded.Set, worded.Without, worded.Notes); ok && !words[text] {
			words[text] = true
			out = append(out, worded)
		}
	}
	return out
}

// Say is a change in the fields of the command's own flags, which say GPUs in
// several ways; false where the command with them would ask for something else.
func (asked *Question) Say(change strategy.Change) (strategy.Change, bool) {
	ofGPUs := func(setting costmodel.Setting) bool { return setting.Field == "gpus" || setting.Field == "gpu" }
	if slices.ContainsFunc(change.Set, ofGPUs) {
		kind := ""
		if i := slices.IndexFunc(change.Set, func(setting costmodel.Setting) bool { return setting.Field == "gpu" }); i >= 0 {
			kind = change.Set[i].Value
		}
		set, without := asked.request.otherGPUs(asked.Topology, len(change.To.Topology.Devices), kind)
		rest := slices.DeleteFunc(slices.Clone(change.Set), ofGPUs)
		change.Set, change.Without = slices.Concat(set, rest), slices.Concat(without, change.Without)
	}
	if asked.takes(&change) {
		return change, true
	}
	if fixed := asked.withoutDefaultsOfAdapters(&change); len(fixed) > 0 {
		with := change
		if with.Set = slices.Concat(change.Set, fixed); asked.takes(&with) {
			return with, true
		}
	}
	// The change may add or replace the flag that said what the mode is.
	mode := costmodel.Set("mode", change.Row.Resolved.Mode)
	if asked.request.Given("mode") || mode.Value == "" || slices.ContainsFunc(change.Set, func(setting costmodel.Setting) bool { return setting.Field == mode.Field }) {
		return change, false
	}
	change.Set = slices.Concat([]costmodel.Setting{mode}, change.Set)
	accepted := asked.takes(&change)
	return change, accepted
}

// withoutDefaultsOfAdapters are the settings that a preset would change with the
// first adapters, as the change was tried.
func (asked *Question) withoutDefaultsOfAdapters(change *strategy.Change) []costmodel.Setting {
	has := func(field string) bool {
		return slices.ContainsFunc(change.Set, func(setting costmodel.Setting) bool { return setting.Field == field })
	}
	name := change.Row.Resolved.Preset
	i := slices.IndexFunc(presets(), func(preset preset) bool { return preset.Name == name })
	if i < 0 || !asked.request.Given("preset") || !has("lora_rank") {
		return nil
	}
	var out []costmodel.Setting
	for _, set := range presets()[i].Sets {
		flag := strings.ReplaceAll(set.Field, "_", "-")
		if set.When != "lora" || asked.request.Given(flag) || has(set.Field) || !set.applies(&change.Row.Resolved) {
			continue
		}
		fields := costmodel.Fields()
		field := &fields[slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == set.Field })]
		value := cmp.Or(field.Text(&change.Row.Resolved), field.Default)
		if on, toggled := field.Ref(&change.Row.Resolved).(*bool); toggled {
			value = strconv.FormatBool(*on)
		}
		out = append(out, costmodel.Setting{Field: set.Field, Value: value})
	}
	return out
}

// takes reports that the command with a change's flags is accepted, and asks
// for what the change was tried as: the flags are parsed as the user's were.
func (asked *Question) takes(change *strategy.Change) bool {
	from := asked.request.cmd
	cmd := &cobra.Command{Use: from.Use}
	again := New(cmd)
	cmd.SetContext(from.Context())
	if copyFlags(from.Flags(), cmd.Flags(), change) != nil || again.Refuse() != nil {
		return false
	}
	to := change.To
	if to.Diffusion != nil {
		training, err := trainsPipeline(again, asked.Source)
		return err == nil && reflect.DeepEqual(generation(again, training), to.Diffusion.Workload)
	}
	again.asProgram(to.Graph)
	parsed, err := again.parse(asked.Topology)
	if err != nil {
		return false
	}
	workload, err := estimate.Resolve(to.Graph, estimate.On(to.Graph, parsed.Workload, parsed.Topology))
	return err == nil && reflect.DeepEqual(workload, change.Row.Resolved) && reflect.DeepEqual(parsed.Topology, to.Topology) &&
		slices.Equal(parsed.Pins, to.Pins) && reflect.DeepEqual(parsed.Together, to.Together) &&
		parsed.Unconstrained == (to.Unconstrained && workload.Strategy.Traits().Sequential) && parsed.Offload == to.Offload
}
