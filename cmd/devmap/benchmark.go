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

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/benchmark"
)

// A benchmark file has a public partitioning problem and names its own devices. Without --gpus and
// --topology devmap solves the problem unchanged, and writes the answer in its authors' format, for
// their programs.

const maxBenchmarkBytes = 256 << 20

// benchmarkFile returns the reader of a benchmark file, and its content. It returns nil for any
// other file and for an unreadable one: these are models.
func (command *planCommand) benchmarkFile(cmd *cobra.Command, arg string) (read benchmarkReader, data []byte) {
	if command.NamesDevices() && ask.GivenByUser(cmd, "gpus", "topology") {
		return nil, nil
	}
	info, err := os.Stat(arg)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBenchmarkBytes {
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
		// A graph of a million nodes needs half of this. With the limit, the garbage collector runs
		// earlier.
		debug.SetMemoryLimit(800 << 20)
	}
	return benchfile.Reader(data, func(member string) bool { _, ok := top[member]; return ok }), data
}

// passedOver is a member with skipped content, as a file may have some hundred megabytes.
type passedOver struct{}

// UnmarshalJSONFrom skips the value.
func (*passedOver) UnmarshalJSONFrom(decoder *jsontext.Decoder) error { return decoder.SkipValue() }

type benchmarkReader func(name string, data []byte) (benchfile.File, error)

func (command *planCommand) solveBenchmark(cmd *cobra.Command, file string, read benchmarkReader, data []byte) error {
	ask.DropDefaults(cmd)
	if other := command.NotForBenchmark(); len(other) > 0 {
		return out.Usagef("%s is a benchmark with its own devices and costs: leave out %s, or plan it as a model with --gpus or --topology",
			file, strings.Join(other, ", "))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), command.TimeLimit)
	defer cancel()
	problem, err := read(file, data)
	if err != nil {
		return err
	}
	if err := command.checkBenchmarkFlags(file, problem); err != nil {
		return err
	}
	set, done := benchmark.Settings{}, func() {}
	set.Data, set.Tensor = command.Degrees()
	if !command.JSON {
		set.Progress, done = out.BenchmarkProgress(cmd.ErrOrStderr())
	}
	answer, err := benchmark.Solve(ctx, problem, set)
	done()
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	var none *benchmark.InfeasibleError
	if errors.As(err, &none) {
		return &out.Infeasible{Err: err}
	}
	if err != nil {
		return err
	}
	written, err := command.write(cmd, answer.Write)
	if err != nil {
		return err
	}
	if !command.JSON {
		show.Benchmark(cmd.ErrOrStderr(), file, answer, command.Explain)
		if !written {
			command.next(cmd, nil, false)
		}
	}
	return nil
}

// checkBenchmarkFlags refuses flags that do not apply to this benchmark file, or to any.
func (command *planCommand) checkBenchmarkFlags(file string, problem benchfile.File) error {
	_, piper := problem.(*benchfile.Piper)
	data, tensor := command.Degrees()
	switch {
	case piper && !command.Contiguous:
		return out.Usagef("--contiguous=false: the stages of %s are a pipeline's, each the difference of two down-sets", file)
	case piper && command.IsLatency():
		return out.Usagef("--objective latency: the objective of %s is the slowest pipeline stage in training, not the time of one sample", file)
	case !command.Contiguous:
		return out.Usagef("--contiguous=false: the benchmark %s allows contiguous parts only; leave the flag out, or plan it as a model with --gpus or --topology", file)
	case command.IsLatency():
		return out.Usagef("--objective latency: the objective of the benchmark %s is its largest load; leave the flag out, or use --objective time with --gpus or --topology", file)
	case !piper && (data|tensor)&^1 != 0: // other than 0 and 1, which both mean one device
		return out.Usagef("--dp, --tp: the parts of %s have a device each: they are neither replicated nor tensor-parallel", file)
	}
	return nil
}
