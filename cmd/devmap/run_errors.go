package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/weights"
)

// commandError converts an error of a run to the command's error.
func (one *planRun) commandError(err error) error {
	var noMemory *executor.MemoryError
	var other *weights.MismatchError
	var hang *executor.HangError
	var lost *executor.LostError
	var taken *executor.TakenError
	switch {
	case errors.As(err, &hang), errors.As(err, &lost):
		return inLines(fmt.Errorf("running %s: %w", one.file, err))
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("running %s: interrupted: no file was written", one.file)
	case errors.As(err, &noMemory):
		return &out.Infeasible{Err: fmt.Errorf("running %s: %w (%s)", one.file, err, one.arenas()), Helps: one.holders()}
	case errors.As(err, &taken):
		return &out.Infeasible{Err: fmt.Errorf("running %s: %w", one.file, err), Helps: one.holders()}
	case errors.Is(err, executor.ErrMemory):
		return &out.Infeasible{Err: fmt.Errorf("running %s: %w (%s)", one.file, err, one.arenas()), Helps: one.holders()}
	case errors.Is(err, weights.ErrOccupied), errors.Is(err, weights.ErrNoConfig):
		return out.Usagef("running %s: %w", one.file, err)
	case errors.As(err, &other) && other.Field != "digest" && other.Field != "scalars":
		return out.Usagef("--resume: %w", err)
	}
	return fmt.Errorf("running %s: %w", one.file, err)
}

// inLines splits an error of several lines into one error per line.
func inLines(err error) error {
	var all []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		all = append(all, errors.New(line))
	}
	return errors.Join(all...)
}

// holders lists the processes with memory on a plan's GPUs, one per line; none if it runs on no
// GPU.
func (one *planRun) holders() (lines []string) {
	if len(one.gpus) == 0 {
		return nil
	}
	now := gpuusage.Look()
	defer now.Close()
	for number, gpu := range one.names {
		if line := now.Holders(number, gpu); line != "" && slices.Contains(one.gpus, number) {
			lines = append(lines, line)
		}
	}
	return lines
}

// arenas describes the memory that a run reserves.
func (one *planRun) arenas() string {
	const most = 8
	devices := one.job.Program.Devices
	what := "GPU"
	if len(one.gpus) > 0 { // a GPU may have several
		what = "device"
	}
	var parts []string
	for i := range devices[:min(most, len(devices))] {
		parts = append(parts, fmt.Sprintf("%s %d: %v", what, devices[i].ID, costmodel.Bytes(devices[i].Arena)))
	}
	if more := len(devices) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// watch passes the progress of the run to say: the bytes loaded, then the steps, with the last loss
// or the generated ids.
func (one *planRun) watch(say func(string)) {
	watch, steps := &one.settings.Watch, one.settings.Steps
	var began time.Time
	watch.Loaded = func(bytes, of int64) {
		text := fmt.Sprintf("loading: %v of %v", costmodel.Bytes(bytes), costmodel.Bytes(of))
		if began.IsZero() {
			began = time.Now()
		} else if took := time.Since(began).Seconds(); took > 0 && len(one.gpus) > 0 { // loading is not measured on the CPU
			text += fmt.Sprintf(", %.3g GB/s", float64(bytes)/took/1e9)
		}
		say(text)
	}
	watch.Waking = func(_, of int64) { say(fmt.Sprintf("waking: %v", costmodel.Bytes(of))) }
	watch.Sleeping = func(_, of int64) { say(fmt.Sprintf("going to sleep: %v", costmodel.Bytes(of))) }
	watch.Step = func(step *executor.StepResult) {
		text := fmt.Sprintf("step %d of %d: %s", step.Number, steps, show.Seconds(step.Times.Step.Seconds()))
		if one.job.Workload.Mode == costmodel.Train {
			text += fmt.Sprintf(", loss %.4f", step.Loss)
		}
		say(text)
	}
	if one.job.Workload.NewTokens > 0 {
		watch.Token = one.following(say)
	}
}

// following shows the ids of a batch's first sequence as they are generated.
func (one *planRun) following(say func(string)) func(int64, int32) {
	const shown = 8
	of, ids := int64(-1), []string(nil)
	return func(sequence int64, id int32) {
		if sequence%one.job.Workload.Batch != 0 {
			return
		}
		if sequence != of {
			of, ids = sequence, nil
		}
		ids = append(ids, fmt.Sprint(id))
		say(fmt.Sprintf("sequence %d, token %d of %d: %s", sequence, len(ids), one.job.Workload.NewTokens, strings.Join(ids[max(0, len(ids)-shown):], " ")))
	}
}
