package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
)

func newEmit() *cobra.Command {
	var r *ask.Request
	cmd := &cobra.Command{
		Use:   "emit PLAN --for ENGINE",
		Short: "Write the plan in the form an engine reads",
		Example: `  devmap emit plan.json --for accelerate -o device_map.json
  devmap emit plan.json --for ms-swift -o device_map.json`,
		Args: exactly(1, "one PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.For == "" {
				return out.Usagef("--for is needed, as in: --for %s (known: %s)", emit.Engines()[0], strings.Join(emit.Engines(), ", "))
			}
			e, err := emit.Parse(r.For)
			if near := ask.Guess("for", r.For); err != nil && near != "" {
				return out.Usagef("--for: %w: did you mean %s?", err, near)
			}
			if err != nil {
				return out.Usagef("--for: %w", err)
			}
			plan, err := out.Interruptible(cmd.Context(), 0, args[0], func() (*devicemap.Plan, error) { return devicemap.ReadPlan(args[0]) })
			if err != nil {
				return err
			}
			if err := out.Spare(r.Output, plan.Model.Source, args[0]); err != nil {
				return err
			}
			if err := out.Write(cmd, r.Output, func(w io.Writer) error { return emit.Write(w, e, plan) }); err != nil {
				return err
			}
			usage := emit.Usage(e, plan, r.Output)
			if r.Output == "" {
				usage = emit.Usage(e, plan, "device_map.json") + " (written there by -o device_map.json)"
			}
			if err := out.Say(cmd.ErrOrStderr(), "%s: %s\n", string(e), usage); err != nil {
				return err
			}
			// The r.Output goes on without the plan: what limits its meaning is
			// said once more.
			notes := plan.Warnings
			if n := emit.Note(e, plan); n != "" {
				notes = append([]string{n}, notes...)
			}
			show.Warnings(cmd.ErrOrStderr(), notes)
			return nil
		},
	}
	r = ask.New(cmd)
	return cmd
}
