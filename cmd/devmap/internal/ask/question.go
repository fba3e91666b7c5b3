// Package ask converts the command's flags to a problem. Its table declares each flag once.
// Parsing, help, completion, overrides of a plan file, commands that reproduce a row, and hints use
// that declaration. The library's settings have fields' names, and become flags here.
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
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Question is the problem of a command's flags. It also converts changes to the problem back to
// flags.
type Question struct {
	planner.Problem
	Options strategy.Options
	// Source is the name of a diffusion pipeline on the command line.
	Source string

	request *Request
}

// Smallest returns the smallest changes that make the problem fit, as flags.
func (asked *Question) Smallest(ctx context.Context) []strategy.Change {
	return asked.said(strategy.Smallest(ctx, asked.Problem, asked.Options))
}

// NoChange says that no tried change fits, and which changes were tried.
func (asked *Question) NoChange(ctx context.Context) string {
	if ctx.Err() != nil {
		return "--time-limit ended the search before a change that fits was found: use a longer one"
	}
	_, program := estimate.Native(nil)
	work := &asked.Workload
	var tried []string
	switch {
	case asked.Diffusion != nil && asked.Diffusion.Workload.Train != nil:
		tried = []string{"--recompute full", "--precision bf16-mixed", "a smaller --batch", "--cache-latents", "a larger --gpu"}
	case asked.Diffusion != nil && len(asked.Topology.Devices) > 1:
		tried = []string{"--fully-shard-degree", "--vae-tiling"}
	case asked.Diffusion != nil:
		tried = []string{"--offload", "--vae-tiling"}
	case work.Mode == costmodel.Train && work.Runtime != program:
		tried = []string{"--recompute full", "--micro-batches", "a smaller --batch and --seq", "--lora-rank", "--quantize", "another --strategy", "more --gpus", "a larger --gpu"}
	default:
		tried = []string{"a smaller --batch and --seq", "another --strategy", "more --gpus", "a larger --gpu"}
	}
	if work.Runtime == costmodel.Devmap && work.Strategy.Traits().Staged {
		tried = append([]string{"--offload-activations full"}, tried...)
	}
	tried = slices.DeleteFunc(tried, func(words string) bool {
		_, flag, _ := strings.Cut(words, "--")
		return slices.Contains(asked.Options.Fixed, flag)
	})
	return "no change was found that fits; tried, alone and together: " + strings.Join(tried, ", ")
}

// Next returns the changes that give the next better values, as flags.
func (asked *Question) Next(ctx context.Context, value float64) []strategy.Change {
	return asked.said(strategy.Next(ctx, asked.Problem, asked.Options, value))
}

// Alternatives returns changes for a map whose largest share is that of one unit, as flags.
func (asked *Question) Alternatives(ctx context.Context, value float64) (fewer, lower []strategy.Change) {
	fewer, lower = strategy.Alternatives(ctx, asked.Problem, asked.Options, value)
	return asked.said(fewer), asked.said(lower)
}

// said returns the changes that the command's flags can express, each once.
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

// Say converts a change to the command's own flags, which describe GPUs in several forms. It
// returns false if the command with these flags would define another problem.
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
	if open := asked.leftOpen(&change); len(open) > 0 {
		with := change
		with.Set = slices.Concat(change.Set, open)
		slices.SortStableFunc(with.Set, func(a, b costmodel.Setting) int { return cmp.Compare(place(a.Field), place(b.Field)) })
		if asked.takes(&with) {
			return with, true
		}
	}
	// The change may add or replace the flag that implied the mode.
	mode := costmodel.Set("mode", change.Row.Resolved.Mode)
	if asked.request.Given("mode") || mode.Value == "" || slices.ContainsFunc(change.Set, func(setting costmodel.Setting) bool { return setting.Field == mode.Field }) {
		return change, false
	}
	change.Set = slices.Concat([]costmodel.Setting{mode}, change.Set)
	accepted := asked.takes(&change)
	return change, accepted
}

// place returns the position of a field among others; below 0 if it is not a workload's.
func place(name string) int {
	return slices.IndexFunc(costmodel.Fields(), func(field costmodel.Field) bool { return field.Name == name })
}

// leftOpen returns the settings in which the command's new problem differs from the tried change. A
// preset depends on flags of the change: its batch is that of one micro-batch, and adapters have
// their own defaults.
func (asked *Question) leftOpen(change *strategy.Change) (out []costmodel.Setting) {
	if !asked.request.Given("preset") || change.To.Diffusion != nil {
		return nil
	}
	parsed := asked.again(change)
	if parsed == nil {
		return nil
	}
	for _, field := range costmodel.Fields() {
		is := field.Text(&change.Row.Workload)
		has := func(setting costmodel.Setting) bool { return setting.Field == field.Name }
		if is == field.Text(&parsed.Workload) || field.Implied(&change.Row.Workload) || slices.ContainsFunc(change.Set, has) || slices.Contains(change.Without, field.Name) {
			continue
		}
		if on, toggled := field.Ref(&change.Row.Workload).(*bool); toggled {
			is = strconv.FormatBool(*on)
		}
		out = append(out, costmodel.Setting{Field: field.Name, Value: cmp.Or(is, field.Default)})
	}
	return out
}

// again returns the problem of the command with a change's flags, parsed like the user's; nil if
// the command refuses them.
func (asked *Question) again(change *strategy.Change) *Question {
	from := asked.request.cmd
	cmd := &cobra.Command{Use: from.Use}
	again := New(cmd)
	cmd.SetContext(from.Context())
	if copyFlags(from.Flags(), cmd.Flags(), change) != nil || again.Refuse() != nil {
		return nil
	}
	if change.To.Diffusion != nil {
		return &Question{request: again}
	}
	again.asProgram(change.To.Graph)
	parsed, err := again.parse(asked.Topology)
	if err != nil || again.Lengths(change.To.Graph) != nil {
		return nil
	}
	return parsed
}

// takes reports that the command accepts a change's flags, and that they define the problem that
// was tried.
func (asked *Question) takes(change *strategy.Change) bool {
	parsed, to := asked.again(change), change.To
	switch {
	case parsed == nil:
		return false
	case to.Diffusion != nil:
		training, err := trainsPipeline(parsed.request, asked.Source)
		return err == nil && reflect.DeepEqual(generation(parsed.request, training), to.Diffusion.Workload)
	}
	workload, err := estimate.Resolve(to.Graph, estimate.On(to.Graph, parsed.Workload, parsed.Topology))
	copying, _ := catalogue.WithCopies(parsed.Topology) // as a problem that offloads activations has it
	return err == nil && reflect.DeepEqual(workload, change.Row.Resolved) && (reflect.DeepEqual(parsed.Topology, to.Topology) || reflect.DeepEqual(copying, to.Topology)) &&
		slices.Equal(parsed.Pins, to.Pins) && reflect.DeepEqual(parsed.Together, to.Together) &&
		parsed.Unconstrained == (to.Unconstrained && workload.Strategy.Traits().Sequential) && parsed.Offload == to.Offload
}
