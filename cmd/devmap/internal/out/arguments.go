package out

import "github.com/spf13/cobra"

// Exactly requires count arguments; otherwise the error has the usage status.
func Exactly(count int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return Usagef("%s takes %s; %d given (devmap help %s)", cmd.CommandPath(), what, len(args), cmd.Name())
	}
}
