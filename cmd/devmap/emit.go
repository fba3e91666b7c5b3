package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

type emitCommand struct{ *ask.Request }

func newEmit() *cobra.Command {
	command := &emitCommand{}
	cmd := &cobra.Command{
		Use:   "emit PLAN --for ENGINE",
		Short: "Write the plan in the form an engine reads",
		Example: `  devmap emit plan.json --for accelerate -o device_map.json
  devmap emit plan.json --for ms-swift -o device_map.json`,
		Args: exactly(1, "one PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	return cmd
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
	if err := out.Spare(command.Output, plan.Model.Source, file); err != nil {
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

// target is the form of the engine that is asked for.
func (command *emitCommand) target() (emit.Target, error) {
	if command.For == "" {
		return emit.Target{}, out.Usagef("--for is needed, as in: --for %s (known: %s)", emit.Names()[0], strings.Join(emit.Names(), ", "))
	}
	target, err := emit.For(command.For)
	if near := ask.Guess("for", command.For); err != nil && near != "" {
		return emit.Target{}, out.Usagef("--for: %w: did you mean %s?", err, near)
	}
	if err != nil {
		return emit.Target{}, out.Usagef("--for: %w", err)
	}
	return target, nil
}
