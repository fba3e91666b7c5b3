package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/posed"
)

// A file of a public partitioning problem names its own devices. Without
// --gpus and --topology it is solved as it stands, and the answer is written
// in the form of the problem's authors, whose programs can judge it.

const maxPosedBytes = 256 << 20

// posedFile is what reads a file that poses a problem of its own, and its
// content; nil for any other file and what cannot be read, which are a model's.
func (command *planCommand) posedFile(arg string) (read posedReader, data []byte) {
	if command.NamesDevices() {
		return nil, nil
	}
	info, err := os.Stat(arg)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPosedBytes {
		return nil, nil
	}
	if data, err = os.ReadFile(arg); err != nil {
		return nil, nil
	}
	var top map[string]passedOver
	if json.Unmarshal(data, &top) != nil {
		return nil, nil
	}
	const many = 64 << 20
	if unset := debug.SetMemoryLimit(-1) == math.MaxInt64; unset && len(data) > many {
		// A graph of a million nodes lives in half of this, and its garbage, which
		// would be as much again and more, is collected sooner.
		debug.SetMemoryLimit(800 << 20)
	}
	return benchfile.Reader(data, func(member string) bool { _, ok := top[member]; return ok }), data
}

// passedOver is a member that is there, and no more is kept of it: a file may
// hold some hundred megabytes.
type passedOver struct{}

// UnmarshalJSONFrom skips it.
func (*passedOver) UnmarshalJSONFrom(decoder *jsontext.Decoder) error { return decoder.SkipValue() }

type posedReader func(name string, data []byte) (benchfile.File, error)

func (command *planCommand) solvePosed(cmd *cobra.Command, file string, read posedReader, data []byte) error {
	if other := command.NotPosed(); len(other) > 0 {
		what := "smallest largest load"
		if command.IsLatency() {
			what = "least latency"
		}
		return out.Usagef("%s names its own devices and costs, and is solved for its %s: %s would mean nothing here (with --gpus or --topology it is planned as a model)",
			file, what, strings.Join(other, ", "))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), command.TimeLimit)
	defer cancel()
	problem, err := read(file, data)
	if err != nil {
		return err
	}
	set, done := posed.Settings{Anywhere: !command.Contiguous, Latency: command.IsLatency()}, func() {}
	set.Data, set.Tensor = command.Degrees()
	if err := suits(file, problem, set); err != nil {
		return err
	}
	if !command.JSON {
		set.Progress, done = out.PosedProgress(cmd.ErrOrStderr(), set.Latency)
	}
	answer, err := posed.Solve(ctx, problem, set)
	done()
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	var none *posed.InfeasibleError
	if errors.As(err, &none) {
		return &out.Infeasible{Err: err, Helps: outOfOrder(ctx, none, problem, set)}
	}
	if err != nil {
		return err
	}
	if err := out.Write(cmd, command.Output, answer.Write); err != nil {
		return err
	}
	if !command.JSON {
		show.Posed(cmd.ErrOrStderr(), file, answer, command.Explain)
	}
	return nil
}

// suits is an error where the file's problem is not one for the settings.
func suits(file string, problem benchfile.File, set posed.Settings) error {
	_, piper := problem.(*benchfile.Piper)
	switch {
	case piper && set.Anywhere:
		return out.Usagef("--contiguous=false: the stages of %s are a pipeline's, each the difference of two down-sets", file)
	case piper && set.Latency:
		return out.Usagef("--objective latency: %s poses the slowest stage of a pipeline in training, not the time of one sample", file)
	case !piper && (set.Data|set.Tensor)&^1 != 0: // not 0 and 1, which are one device
		return out.Usagef("--dp, --tp: the parts of %s have a device each: they are neither replicated nor tensor-parallel", file)
	}
	return nil
}

// outOfOrder offers any assignment where it was contiguous placements alone
// that do not fit, and it does.
func outOfOrder(ctx context.Context, no *posed.InfeasibleError, problem benchfile.File, set posed.Settings) []string {
	if !no.Contiguous {
		return nil
	}
	answer, err := posed.Solve(ctx, problem, posed.Settings{Anywhere: true, Latency: set.Latency})
	if err != nil {
		return nil
	}
	return []string{fmt.Sprintf("--contiguous=false: %s %.6g %s, fits", answer.Objective, answer.Value, answer.Unit)}
}
