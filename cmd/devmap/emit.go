package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

type emitCommand struct{ *ask.Request }

func newEmit() *cobra.Command {
	command := &emitCommand{}
	long, examples := []string{"Write a plan in the form that an engine reads."}, []string(nil)
	for _, target := range emit.Targets() {
		if target.Help != "" {
			long = append(long, target.Help)
		}
		example := fmt.Sprintf("  devmap emit plan.json --for %s -o %s", target.Name, target.File)
		if target.Run != "" {
			example += " && " + target.Run
		}
		examples = append(examples, example)
	}
	cmd := &cobra.Command{
		Use:     "emit PLAN --for ENGINE",
		Short:   "Write a plan in the form that an engine reads",
		Long:    strings.Join(long, "\n\n"),
		Example: strings.Join(examples, "\n"),
		Args:    out.Exactly(1, "one PLAN"),
		RunE:    func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	return cmd
}

// ofRelease takes the release of --transformers, where the model must be the same.
func (command *emitCommand) ofRelease(plan *devicemap.Plan, file string) error {
	if command.Transformers == "" || command.Transformers == plan.Model.Transformers {
		return nil
	}
	plan.Model.Transformers = command.Transformers
	_, err := plannedModel(plan, file, command.Model)
	return err
}

func (command *emitCommand) run(cmd *cobra.Command, file string) error {
	target, err := command.target()
	if err != nil {
		return err
	}
	plan, err := out.Interruptible(cmd.Context(), 0, file, func() (*devicemap.Plan, error) { return devicemap.ReadPlan(file) })
	if err != nil {
		return err
	}
	if err := command.ofRelease(plan, file); err != nil {
		return err
	}
	if err := out.Spare(cmd, out.Written{Flag: "output", Path: command.Output}, plan.Model.Source); err != nil {
		return err
	}
	if err := command.Contradicted(plan); err != nil {
		return err
	}
	if err := asUsage(refusedBy(target, plan)); err != nil {
		return err
	}
	input, err := inputOf(cmd, target, plan, file, command.Model)
	if err != nil {
		return err
	}
	input.JSON, input.Output = command.JSON, command.Output
	if namesFolder(target, command.Output) {
		note, err := writeFolder(cmd, target, input, command.Output, command.Force, nil)
		if err != nil {
			return err
		}
		return note()
	}
	if err := command.write(cmd, target, input); err != nil {
		return err
	}
	name := target.FileOf(input)
	written := " (written there by -o " + name + ")"
	if command.Output != "" {
		name, written = command.Output, ""
	}
	usage, note := target.Usage(input, name)
	if err := out.Note(cmd, "%s: %s%s\n", target.Name, usage, written); err != nil {
		return err
	}
	// The file is used without the plan, so the notes that limit its meaning are
	// printed again.
	notes := slices.Concat(ask.Texts(target.Outside(plan)), plan.Warnings)
	if note != "" {
		notes = slices.Insert(notes, 0, note)
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	return nil
}

// write writes the file of a target.
func (command *emitCommand) write(cmd *cobra.Command, target *emit.Target, input *emit.Input) error {
	var text bytes.Buffer
	if err := asUsage(target.Write(&text, input)); err != nil {
		return err
	}
	return out.Write(cmd, command.Output, func(to io.Writer) error { _, err := text.WriteTo(to); return err })
}

// refusedBy is why a target does not take a plan. The type of the model is read again,
// if it is still there: a plan does not have it.
func refusedBy(target *emit.Target, plan *devicemap.Plan) error {
	if err := target.Refuse(plan, ""); err != nil {
		return err
	}
	if info, err := os.Stat(plan.Model.Source); plan.Workload.Runtime != "jax" || err == nil && !info.Mode().IsRegular() && !info.IsDir() { // reading a pipe waits
		return nil
	}
	graph, err := ask.ReadModel(plan.Model.Source, ask.Reading{Transformers: plan.Model.Transformers})
	if err != nil || graph.Digest() != plan.Model.Digest {
		return nil //nolint:nilerr // it has moved, and emit does not need it
	}
	return target.Refuse(plan, graph.Family)
}

// asUsage makes a usage error of a plan that is sound and that the engine does not
// take: --for names another.
func asUsage(err error) error {
	if refused := interface{ Refused() }(nil); errors.As(err, &refused) {
		return out.Usagef("%w", err)
	}
	return err
}

// namesFolder reports that -o means a folder: the target has no other form, or it is one.
func namesFolder(target *emit.Target, name string) bool {
	info, err := os.Stat(name)
	return name != "" && (target.OnlyFolder || strings.HasSuffix(name, "/") || err == nil && info.IsDir())
}

// writeFolder writes the files of a job into a folder, which it makes. wanted reports the
// files to write; nil: all. Without force it replaces no other bytes: a folder may have
// files that its owner has changed. note prints what it wrote.
func writeFolder(cmd *cobra.Command, target *emit.Target, input *emit.Input, folder string, force bool, wanted func(name string) bool) (note func() error, err error) {
	if target.Folder == nil {
		return nil, out.Usagef("-o %s is a folder, and --for %s writes one file: name it", out.OneLine(folder), target.Name)
	}
	if isFile(filepath.Clean(folder)) {
		return nil, out.Usagef("-o %s is a file, and the job is a folder: name another", out.OneLine(folder))
	}
	files, err := target.Folder(input)
	if err != nil {
		return nil, asUsage(err)
	}
	if wanted != nil {
		maps.DeleteFunc(files, func(name, _ string) bool { return !wanted(name) })
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		path := filepath.Join(folder, name)
		if err := out.Spare(cmd, out.Written{Flag: "output", Path: path}, ""); err != nil {
			return nil, err
		}
		if there, fault := os.ReadFile(path); force || fault == nil && string(there) == files[name] {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%q exists: --force replaces it, or name another folder", path)
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := out.Write(cmd, filepath.Join(folder, name), func(to io.Writer) error { _, err := io.WriteString(to, files[name]); return err }); err != nil {
			return nil, err
		}
	}
	return func() error { return noteFolder(cmd, target, input, folder, files, wanted != nil) }, nil
}

// noteFolder prints the files of a folder, in order, the commands that start the job, and
// notes. planned: plan wrote its plan there, too, and prints its own warnings.
func noteFolder(cmd *cobra.Command, target *emit.Target, input *emit.Input, folder string, files map[string]string, planned bool) error {
	names := slices.Sorted(maps.Keys(files))
	script := filepath.Join(folder, "run.sh")
	if script[0] == '-' { // no flag of sh
		script = "./" + script
	}
	starts := []string{"sh " + emit.Shell(script)}
	for name, command := range map[string]string{"job.sbatch": "sbatch", "trainjob.yaml": "kubectl create -f", "jobset.yaml": "kubectl create -f"} {
		if files[name] != "" {
			starts = append(starts, command+" "+name)
		}
	}
	slices.Sort(starts[1:])
	if planned {
		names = append(names, "plan.json")
	}
	if err := out.Note(cmd, "%s: wrote %s\n%s: %s\n", out.OneLine(folder), strings.Join(names, ", "), target.Name, strings.Join(starts, ", or there ")); err != nil {
		return err
	}
	_, note := target.Usage(input, folder)
	script = ""
	if strings.Contains(files["run.sh"], "${SCRIPT:") {
		script = "run.sh wants the training script in the variable SCRIPT, as in SCRIPT=train.py sh run.sh; the files for Kubernetes name it under env"
	}
	notes := append([]string{note, script}, ask.Texts(target.Outside(input.Plan))...)
	if !planned {
		notes = append(notes, input.Plan.Warnings...)
	}
	show.Warnings(cmd.ErrOrStderr(), slices.DeleteFunc(notes, func(note string) bool { return note == "" }))
	return nil
}

// jobTarget is the training program of a plan, whose job plan --emit writes.
func jobTarget(plan *devicemap.Plan) (*emit.Target, error) {
	var reason error
	names := []string{"transformers", "trl", "llamafactory", "axolotl", "lightning", "torchtune", "torchtitan", "ms-swift-megatron", "accelerate-config"}
	if plan.Workload.Runtime == "megatron" && plan.Workload.Preset == "" {
		names = []string{"megatron"}
	}
	for _, name := range names {
		target, err := emit.For(name)
		if err == nil {
			err = target.Refuse(plan, "")
		}
		if err == nil {
			return target, nil
		}
		reason = cmp.Or(reason, err)
	}
	return nil, asUsage(fmt.Errorf("--emit: no training program's file takes the plan: %w", reason))
}

// jobNotes say of a plan for Megatron or torchtitan what its file will not: that there is
// none, or that the program runs another model.
func jobNotes(plan *devicemap.Plan) []string {
	name := plan.Workload.Runtime
	if strings.HasPrefix(plan.Workload.Preset, "torchtitan") {
		name = "torchtitan"
	}
	target, err := emit.For(name)
	if err != nil || name != "torchtitan" && name != "megatron" || plan.Workload.Mode != costmodel.Train {
		return nil
	}
	input := &emit.Input{Plan: plan}
	if target.Config {
		if input.Config, err = ask.ReadConfig(plan.Model.Source); err != nil {
			return nil
		}
	}
	if _, err := target.Folder(input); err != nil {
		return []string{refuses(name) + err.Error()}
	}
	if target.Caveat != nil && target.Caveat(input) != "" {
		return []string{target.Caveat(input)}
	}
	return nil
}

// refuses begins a plan's warning that a target has no form for it.
func refuses(target string) string { return "emit --for " + target + " refuses this plan: " }

// inputOf reads what the target needs with the plan.
func inputOf(cmd *cobra.Command, target *emit.Target, plan *devicemap.Plan, file, model string) (*emit.Input, error) {
	input := &emit.Input{Plan: plan}
	if target.Config {
		graph, err := plannedModel(plan, file, model)
		if err != nil {
			return nil, err
		}
		if input.Config, err = ask.ReadConfig(graph.Source); err != nil {
			return nil, err
		}
	}
	if target.Program {
		job, err := programOf(cmd, plan, file, model, "")
		if err != nil {
			return nil, err
		}
		input.Program = job.Program
	}
	return input, nil
}

// target is the engine's, and refuses flags that mean nothing to it.
func (command *emitCommand) target() (*emit.Target, error) {
	names := ask.Targets()
	if command.For == "" {
		return nil, out.Usagef("--for is needed, as in: --for %s (known: %s)", names[0], strings.Join(names, ", "))
	}
	target, err := emit.For(command.For)
	switch {
	case err != nil:
		near := ask.Guess("for", command.For)
		if near != "" {
			near = ": did you mean " + near + "?"
		}
		return nil, out.Usagef("--for: %w%s", err, near)
	case command.JSON && target.JSON == "":
		return nil, out.Usagef("--json is of --for %s: %s reads one form", having(func(target *emit.Target) bool { return target.JSON != "" }), target.Name)
	case command.Model != "" && !target.Config && !target.Program:
		return nil, out.Usagef("--model is of --for %s: nothing else reads the model again", having(func(target *emit.Target) bool { return target.Config || target.Program }))
	}
	return target, nil
}

// having names the targets that have a property.
func having(property func(*emit.Target) bool) string {
	var names []string
	for _, target := range emit.Targets() {
		if property(target) {
			names = append(names, target.Name)
		}
	}
	return strings.Join(names, ", ")
}

// nextCommand is what takes a plan's file: the target of its engine if there
// is one that takes the plan, else a comparison with the engine's own run.
func nextCommand(plan *devicemap.Plan, file string) string {
	traits := plan.Workload.Strategy.Traits()
	name := plan.Workload.Runtime
	switch {
	case name == "jax":
		name = "openpi"
	case name == costmodel.Devmap:
		return "devmap run " + emit.Shell(file)
	case traits.Staged && name != "megatron" && name != "torchtitan": // these have files of their own
		name = "torch-schedule"
	case plan.Workload.Mode == costmodel.Train:
		name = cmp.Or(presetProgram(plan), name)
	}
	watch := "devmap watch " + emit.Shell(file) + " -- COMMAND"
	target, err := emit.For(name)
	if err != nil || refusedBy(target, plan) != nil || slices.ContainsFunc(plan.Warnings, func(note string) bool { return strings.HasPrefix(note, refuses(name)) }) {
		return watch
	}
	input := &emit.Input{Plan: plan}
	if target.Config {
		input.Config, _ = ask.ReadConfig(plan.Model.Source) // nil: the target refuses it
	}
	if target.Write(io.Discard, input) != nil {
		return watch
	}
	return fmt.Sprintf("devmap emit %s --for %s -o %s", emit.Shell(file), target.Name, target.File)
}

// presetProgram is the program of a plan's preset; the default, transformers, has none.
func presetProgram(plan *devicemap.Plan) string {
	if preset := plan.Workload.Preset; preset == "" || preset == "transformers" || preset == "ms-swift" {
		return strings.TrimPrefix(preset, "transformers")
	}
	if target, err := jobTarget(plan); err == nil {
		return target.Name
	}
	return ""
}
