// Command limits runs devmap on large models with a time limit, and with an
// interrupt, and prints what each command took. Run it from the repository's
// root:
//
//	go run ./cmd/devmap/internal/limits
//
// A row fails if the command used more processor time than the limit and half a
// second, or half a second of it after the limit, or 0.3 seconds after the
// interrupt, or ended with another status than it should. Processor time is
// what a loaded machine leaves alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	var asked settings
	flag.StringVar(&asked.devmap, "devmap", "", "the program to run (built from ./cmd/devmap if empty)")
	flag.DurationVar(&asked.limit, "limit", time.Second, "--time-limit of each command")
	flag.DurationVar(&asked.interrupt, "interrupt", 500*time.Millisecond, "when a command is interrupted; 0: never")
	only := flag.String("only", "", "a regular expression of the commands to run (all if empty)")
	flag.Parse()
	asked.only = regexp.MustCompile(*only)
	if err := asked.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

// settings are the flags of the command line.
type settings struct {
	devmap           string
	limit, interrupt time.Duration
	only             *regexp.Regexp
}

// run prints the table, and returns an error if a row failed.
func (asked *settings) run(stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "limits")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if asked.devmap == "" {
		asked.devmap = filepath.Join(dir, "devmap")
		build := exec.Command("go", "build", "-o", asked.devmap, "./cmd/devmap") //nolint:gosec // a path of ours
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building devmap: %w\n%s", err, out)
		}
	}
	if err := writeModels(dir); err != nil {
		return err
	}
	failed := 0
	_, _ = fmt.Fprintf(stdout, "%9s %6s %6s %6s  %-9s %6s  %-9s %s\n", "processor", "limit", "after", "status", "", "Ctrl-C", "", "command")
	for _, args := range commands() {
		if !asked.only.MatchString(args.String()) {
			continue
		}
		line, ok, err := asked.row(dir, args)
		if err != nil {
			return fmt.Errorf("%s: %w", args, err)
		}
		if !ok {
			failed++
		}
		_, _ = fmt.Fprintf(stdout, "%s  %s\n", line, args)
	}
	if failed > 0 {
		return fmt.Errorf("%d rows failed", failed)
	}
	return nil
}

// What a command may use after its limit, and after an interrupt.
const (
	afterLimit     = 500 * time.Millisecond
	afterInterrupt = 300 * time.Millisecond
)

// The exit statuses that a row may end with, other than 0.
const (
	refused     = 2
	infeasible  = 3
	interrupted = 130 // 128 + SIGINT
)

// row runs a command with the limit, and again with an interrupt.
func (asked *settings) row(dir string, args command) (line string, ok bool, err error) {
	ended, err := asked.timed(dir, args)
	if err != nil {
		return "", false, err
	}
	verdict := "ok"
	switch {
	case ended.status != 0 && ended.status != refused && ended.status != infeasible:
		verdict = "status"
	case args.limited() && ended.late(asked.limit):
		verdict = "too long"
	}
	line = fmt.Sprintf("%8.2fs %6v %5.2fs %6d  %-9s", ended.used.Seconds(), asked.limit, ended.after.Seconds(), ended.status, verdict)
	if asked.interrupt == 0 {
		return line, verdict == "ok", nil
	}
	broken, err := asked.broken(dir, args)
	if err != nil {
		return "", false, err
	}
	said := "ok"
	switch {
	case !broken.signalled:
		return line + fmt.Sprintf(" %6s  %-9s", "", "done"), verdict == "ok", nil
	case broken.status != interrupted:
		said = fmt.Sprintf("status %d", broken.status)
	case broken.after > afterInterrupt:
		said = "too long"
	}
	return line + fmt.Sprintf(" %5.2fs  %-9s", broken.after.Seconds(), said), verdict == "ok" && said == "ok", nil
}

// outcome is how a command ended: its status, the processor time it took, and
// the part of it after the limit or the signal.
type outcome struct {
	status      int
	used, after time.Duration
	signalled   bool
}

// late reports that a command took too long. What it took after the limit
// counts if it had half of the limit's processor time before; on a loaded
// machine it had less, and its beginning may come after the limit.
func (ended *outcome) late(limit time.Duration) bool {
	return ended.used > limit+afterLimit || ended.after > afterLimit && ended.used-ended.after >= limit/2
}

// timed runs a command with the time limit.
func (asked *settings) timed(dir string, args command) (outcome, error) {
	if args.limited() {
		args = append(args[:len(args):len(args)], "--time-limit", asked.limit.String())
	}
	start := time.Now()
	return asked.watched(dir, args, func(_ *os.Process, _ time.Duration) bool { return time.Since(start) >= asked.limit })
}

// longest ends a command that has no limit.
const longest = time.Minute

// broken runs a command without a limit that matters, and interrupts it.
func (asked *settings) broken(dir string, args command) (outcome, error) {
	if args.limited() {
		args = append(args[:len(args):len(args)], "--time-limit", longest.String())
	}
	return asked.watched(dir, args, func(process *os.Process, used time.Duration) bool {
		return used >= asked.interrupt && process.Signal(os.Interrupt) == nil
	})
}

// tick is how often the processor time of a command is read.
const tick = 5 * time.Millisecond

// watched runs a command, and counts what it takes after reached is true for
// the first time.
func (asked *settings) watched(dir string, args command, reached func(process *os.Process, used time.Duration) bool) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	process := exec.CommandContext(ctx, asked.devmap, args...) //nolint:gosec // a path of ours
	process.Dir = dir
	if err := process.Start(); err != nil {
		return outcome{}, err
	}
	done := make(chan error, 1)
	go func() { done <- process.Wait() }()
	before, passed := time.Duration(0), false
	for {
		select {
		case err := <-done:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return outcome{}, err
			}
			state := process.ProcessState
			out := outcome{status: state.ExitCode(), used: state.UserTime() + state.SystemTime(), signalled: passed}
			if passed {
				out.after = out.used - before
			}
			return out, nil
		case <-time.After(tick):
		}
		used, err := processorTime(process.Process.Pid)
		if err == nil && !passed && reached(process.Process, used) {
			before, passed = used, true
		}
	}
}
