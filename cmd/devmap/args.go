package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

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

// exactly asks for count arguments, with the usage status.
func exactly(count int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return out.Usagef("%s takes %s; %d given (devmap help %s)", cmd.CommandPath(), what, len(args), cmd.Name())
	}
}
