// Command devmap plans how a neural network is spread over GPUs.
//
// Results go to stdout, everything else to stderr. Exit status: 0 done,
// 1 error, 2 usage, 3 nothing fits, 4 a check failed, 128 + n ended by signal n.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/interrupt"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

func main() {
	collectLater()
	cobra.EnableCommandSorting = false // groups have their own order
	ctx, stop := interrupt.UntilSignal()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// collectLater puts the first garbage collection off until the heap has 64 MiB, not 4:
// most commands end before. Later ones come when it has grown five times, not twice.
func collectLater() {
	if os.Getenv("GOGC") == "" {
		runtime.AddCleanup(new(strings.Builder), func(usual int) { debug.SetGCPercent(4 * usual) }, debug.SetGCPercent(1600))
	}
}

// unknownCommand returns an error for a word that is not a command. cobra would first parse its
// flags as the root's, and blame one of them.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	if found, _, err := root.Find(args[:1]); err != nil || found == root {
		return noCommand(root, args)
	}
	return nil
}

// commandOf returns the name of the command: the first word without the dash of a flag.
func commandOf(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--color":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// run is the whole program, without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	results, problems := out.NewResults(stdout), out.NewStream(stderr)
	link, err := worker.Inherited()
	root := newRoot(worker.Self{Args: args, Link: link})
	root.SetArgs(args)
	root.SetOut(results)
	root.SetErr(problems)
	if err == nil {
		err = unknownCommand(root, args)
	}
	if link != nil {
		ctx = link.Until(ctx)
	}
	command := commandOf(args)
	began := time.Now()
	done := func() {}
	if link == nil {
		done = interrupt.LeaveLate(ctx, command, problems, out.Leave, func(status int, err error) {
			lastWord(stdout, root, args, status, err)
			os.Exit(status)
		})
	}
	cmd := root
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	done()
	if link == nil && (err != nil || command != "plan") { // a plan has them in its file
		show.Warnings(problems, ask.DefaultNotes(cmd))
	}
	err = ask.Sourced(cmd, err)
	if link == nil && isOn(cmd.Flag("verbose")) {
		show.Warnings(problems, []string{fmt.Sprintf("%s took %v", strings.TrimSpace("devmap "+command), time.Since(began).Round(time.Millisecond))})
	}
	code := out.Report(problems, err, ask.ErrorText)
	if link != nil {
		code = flushed(results, problems, code)
		link.Say(&worker.Message{Done: &code})
		return code
	}
	code = interrupt.Status(ctx, command, code, problems)
	if asksJSON(cmd, args) && !results.Wrote() {
		out.WriteError(results, err, code, ask.ErrorText) //nolint:errcheck // the stream keeps the error
	}
	return flushed(results, problems, code)
}

// lastWord writes the error of an interrupt, if the output is JSON. The stream of the result is
// closed to it: the process ends without one ([out.Leave]).
func lastWord(stdout io.Writer, root *cobra.Command, args []string, status int, err error) {
	if asksJSON(root, args) {
		out.WriteError(out.NewStream(stdout), err, status, ask.ErrorText) //nolint:errcheck // the process ends anyway
	}
}

// flushed returns the exit status after all results are written.
func flushed(results, problems *out.Stream, code int) int {
	if err := results.Flush(); err != nil {
		return max(code, out.Report(problems, fmt.Errorf("writing the result to standard output: %w", err), ask.ErrorText))
	}
	return code
}

// asksJSON reports that the output of a call is JSON, even if its flags are invalid.
func asksJSON(cmd *cobra.Command, args []string) bool {
	if flag := cmd.Flag("json"); isOn(flag) {
		return true
	}
	for _, word := range args {
		if word == "--" {
			break
		}
		if word == "--json" || word == "--json=true" {
			return true
		}
	}
	return false
}
