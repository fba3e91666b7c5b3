package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

func newRoot(self worker.Self) *cobra.Command {
	var asked bool // for the version
	root := &cobra.Command{
		Use:   "devmap",
		Short: "Plan how a neural network is spread over GPUs, and prove it",
		Long: `devmap reads a model (a Hugging Face folder, a config.json alone, a
model.json), predicts what every GPU will hold at its peak, finds the placement
with the smallest peak and proves how close it is to the optimum.

Exit status: 0 done, 1 error, 2 usage, 3 nothing fits, 4 a check failed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				return printVersion(cmd)
			}
			return cmd.Help()
		},
	}
	// Not cobra's: its template would link text/template, and with it every
	// method of every type (6 MB).
	root.Flags().BoolVar(&asked, "version", false, "print the version")
	root.SetFlagErrorFunc(ask.FlagError)
	for _, cmd := range []*cobra.Command{newPlan(), newEstimate(), newCheck(), newInspect(), newEmit(), newSimulate(), newRun(self, backends.CPU()), newProbe(self), newWatch(self), newList("models", "List the built-in models", listModels), newList("gpus", "List the GPUs that --gpu takes", listGPUs), newVersion()} {
		ask.Complete(cmd)
		root.AddCommand(cmd)
	}
	strict(root)
	for _, cmd := range root.Commands() {
		ask.Single(cmd)
	}
	return root
}

// strict makes cobra's own commands refuse what they do not know: they would
// print their help and succeed.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args = noCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return noCommand(found, rest)
				}
				return nil
			}
		}
	}
}

// noCommand refuses an argument where a command is expected.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, command := range cmd.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	near := ""
	if did := cmd.SuggestionsFor(args[0]); len(did) > 0 {
		near = ": did you mean " + strings.Join(did, " or ") + "?"
	}
	return out.Usagef("unknown command %q of %s (known: %s)%s", args[0], cmd.CommandPath(), strings.Join(names, ", "), near)
}
