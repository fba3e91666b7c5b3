package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/torchcheck"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

type emitCommand struct{ *ask.Request }

func newEmit() *cobra.Command {
	command := &emitCommand{}
	cmd := &cobra.Command{
		Use:   "emit PLAN --for ENGINE",
		Short: "Write the plan in the form an engine reads",
		Long: `Write the plan in the form that an engine reads. --for program is devmap's own:
the instructions of one step on every GPU, with all buffers and messages, proved
sound before they are written. Its model is read again. A plan for another
runtime keeps its cut and is predicted again for devmap: the program holds both
predictions.

--for torch-check is a program in Python, one file: it builds the model from its
config with random weights, runs three steps on PyTorch as the plan has it, and
prints each GPU's peaks beside those of the plan; exit status 4 where one is not
within the bound that it names. It needs torch and transformers, for a device map
accelerate, and no checkpoint.`,
		Example: `  devmap emit plan.json --for accelerate -o device_map.json
  devmap emit plan.json --for ms-swift -o device_map.json
  devmap emit plan.json --for torch-schedule -o schedule.csv
  devmap emit plan.json --for deepspeed -o ds_config.json
  devmap emit plan.json --for openpi -o run.sh
  devmap emit plan.json --for diffusers -o load.py
  devmap emit plan.json --for xdit -o flags.txt
  devmap emit plan.json --for program -o program.txt
  devmap emit plan.json --for torch-check -o check.py && python3 check.py`,
		Args: out.Exactly(1, "one PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	return cmd
}

func (command *emitCommand) run(cmd *cobra.Command, file string) error {
	if err := command.known(); err != nil {
		return err
	}
	plan, err := out.Interruptible(cmd.Context(), 0, file, func() (*devicemap.Plan, error) { return devicemap.ReadPlan(file) })
	if err != nil {
		return err
	}
	if err := out.Spare(command.Output, plan.Model.Source, file, command.Model); err != nil {
		return err
	}
	switch command.For {
	case ask.Program:
		return command.program(cmd, plan, file)
	case ask.TorchCheck:
		return command.check(cmd, plan, file)
	}
	return command.engine(cmd, plan)
}

// check writes the program that measures the plan on PyTorch.
func (command *emitCommand) check(cmd *cobra.Command, plan *devicemap.Plan, file string) error {
	graph, err := plannedModel(plan, file, command.Model)
	if err != nil {
		return err
	}
	config, err := ask.ReadConfig(graph.Source, graph)
	if err != nil {
		return err
	}
	if err := out.Write(cmd, command.Output, func(to io.Writer) error { return torchcheck.Write(to, plan, config) }); err != nil {
		return err
	}
	name, written := command.Output, ""
	if name == "" {
		name, written = "check.py", " (written there by -o check.py)"
	}
	if err := out.Say(cmd.ErrOrStderr(), "%s: %s%s\n", ask.TorchCheck, torchcheck.Usage(plan, name), written); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), plan.Warnings)
	return nil
}

// engine writes the file of another engine, and says how it is read.
func (command *emitCommand) engine(cmd *cobra.Command, plan *devicemap.Plan) error {
	target, err := emit.For(command.For)
	if err != nil {
		return err
	}
	if err := out.Write(cmd, command.Output, func(to io.Writer) error { return target.Write(to, plan) }); err != nil {
		return err
	}
	usage, note := target.Usage(plan, command.Output)
	if command.Output == "" {
		usage, note = target.Usage(plan, target.File)
		usage += " (written there by -o " + target.File + ")"
	}
	if err := out.Say(cmd.ErrOrStderr(), "%s: %s\n", command.For, usage); err != nil {
		return err
	}
	// The file goes on without the plan: what limits its meaning is said once
	// more.
	notes := plan.Warnings
	if note != "" {
		notes = slices.Concat([]string{note}, notes)
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	return nil
}

// program writes devmap's own program of the plan, as text or as JSON.
func (command *emitCommand) program(cmd *cobra.Command, plan *devicemap.Plan, file string) error {
	job, err := programOf(cmd, plan, file, command.Model, "")
	if err != nil {
		return err
	}
	made := job.Program
	write, named := made.Text, "program.txt"
	if command.JSON {
		write, named = made.WriteJSON, "program.json"
	}
	if err := out.Write(cmd, command.Output, write); err != nil {
		return err
	}
	name, written := command.Output, ""
	if name == "" {
		name, written = named, " (written there by -o "+named+")"
	}
	if err := out.Say(cmd.ErrOrStderr(), "program: %d instructions on %d GPUs, checked: devmap simulate %s%s\n", len(made.Instrs), len(made.Devices), name, written); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), plan.Warnings)
	return nil
}

// known refuses an engine that there is no form for, and flags that are not its.
func (command *emitCommand) known() error {
	targets := strings.Join(ask.Targets(), ", ")
	switch {
	case command.For == "":
		return out.Usagef("--for is needed, as in: --for %s (known: %s)", ask.Targets()[0], targets)
	case slices.Contains(ask.Targets(), command.For):
		return command.own()
	}
	near := ask.Guess("for", command.For)
	if near != "" {
		near = ": did you mean " + near + "?"
	}
	return out.Usagef("--for: unknown engine %q (built: %s)%s", command.For, targets, near)
}

// own refuses the flags of a program for anything else.
func (command *emitCommand) own() error {
	switch {
	case command.For == ask.Program:
	case command.JSON:
		return out.Usagef("--json is of --for %s: %s reads one form", ask.Program, command.For)
	case command.Model != "" && command.For != ask.TorchCheck:
		return out.Usagef("--model is of --for %s: nothing else reads the model again", ask.Program)
	}
	return nil
}
