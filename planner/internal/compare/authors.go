package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
)

// authors runs the authors' throughput-dp/dp.cpp on a file, for at most the
// time that devmap has, and says what it took.
func (given *settings) authors(ctx context.Context, path string) string {
	if given.dp == "" {
		return "-"
	}
	ctx, cancel := context.WithTimeout(ctx, given.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, given.dp) //nolint:gosec // the user's own program
	in, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer in.Close() //nolint:errcheck // read only
	cmd.Stdin = in
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("> %.0f", given.limit.Seconds())
	case err != nil:
		return err.Error()
	}
	took := fmt.Sprintf("%.2f", cmd.ProcessState.UserTime().Seconds())
	if bytes.Contains(out, []byte("FAIL")) {
		took += " (fails its own check)"
	}
	return took
}

// judge has the authors' checker score a placement. It merges all CPUs into
// one, so files with several are left out.
func (given *settings) judge(ctx context.Context, path string, file *benchfile.DNNPartitioning, place []int) error {
	if given.dp == "" || file.CPUs > 1 {
		return nil
	}
	split, err := os.CreateTemp("", "split*.json")
	if err != nil {
		return err
	}
	defer os.Remove(split.Name()) //nolint:errcheck // a temporary file
	err = errors.Join(pose.WriteDNNPartitioning(split, file, place), split.Close())
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()                                                   //nolint:errcheck // read only
	cmd := exec.CommandContext(ctx, given.dp, "-expert", split.Name()) //nolint:gosec // the user's own program
	cmd.Stdin = in
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the authors' checker: %w", err)
	}
	_, largest, err := pose.DNNPartitioning(file).Score(place)
	if err != nil {
		return err
	}
	_, after, found := strings.Cut(string(said), "max-load of the split: ")
	line, _, _ := strings.Cut(after, "\n")
	theirs, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if !found || err != nil || bytes.Contains(said, []byte("too much memory")) || theirs > largest*(1+1e-5) || theirs < largest*(1-1e-5) {
		return fmt.Errorf("the authors' checker gives %q where we have %v: %w", line, largest, err)
	}
	return nil
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var rusage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &rusage) != nil {
		return 0
	}
	return time.Duration(rusage.Utime.Nano())
}
