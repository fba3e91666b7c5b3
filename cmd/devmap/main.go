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
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, problems := &stream{w: stdout}, &stream{w: stderr}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(problems)
	err := root.ExecuteContext(ctx)
	if unwritten := out.flush(); unwritten != nil {
		err = fmt.Errorf("writing stdout: %w", withoutName(unwritten))
	}
	return report(problems, err)
}
