// Command devmap plans how a neural network is spread over GPUs.
//
// Results go to stdout, everything else to stderr. Exit status: 0 done,
// 1 error, 2 usage, 3 nothing fits, 4 a check failed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// unknownCommand names a command that is none. cobra would parse the flags
// that follow as the root's own first, and blame one of them.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	if found, _, err := root.Find(args[:1]); err != nil || found == root {
		return noCommand(root, args)
	}
	return nil
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	results, problems := out.NewStream(stdout), out.NewStream(stderr)
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(results)
	root.SetErr(problems)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if unwritten := results.Flush(); unwritten != nil {
		err = fmt.Errorf("writing stdout: %w", unwritten)
	}
	return out.Report(problems, err, ask.ErrorText)
}
