package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "devmap",
		Short: "Plan how a neural network is spread over GPUs, and prove it",
		Long: `devmap reads a model (a Hugging Face folder, a config.json alone, a
model.json), predicts what every GPU will hold at its peak, finds the placement
with the smallest peak and proves how close it is to the optimum.

Exit status: 0 done, 1 error, 2 usage, 3 nothing fits, 4 a check failed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newPlan(), newCheck(), newInspect(), newEmit(), newVersion())
	return root
}

// exactly asks for n arguments, with the usage status.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("%s takes %s, %d given (devmap help %s)", cmd.CommandPath(), what, len(args), cmd.Name())
	}
}

// notBuilt refuses a value that the contract has and this version has not.
func notBuilt(flag, value, built string) error {
	return usagef("--%s %s is not built yet (built: %s)", flag, value, built)
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
