package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
)

// leastLatency finds and bounds the least latency of every file of the kind
// latency, beside the authors' greedy split and the experts'. Where -greedy
// names their program it is run, and judges each answer.
func leastLatency(ctx context.Context, out io.Writer, given settings) error {
	grid := &table{writer: out}
	grid.printf("dnn-partitioning, latency of one sample in ms, one call an accelerator, at most %v each\n", given.limit)
	grid.printf("the experts' splits marked * hold more than an accelerator may\n")
	const form = "%-46s %9s %9s %8s %-9s %7s %9s %9s  %s\n"
	grid.printf(form, "file", "devmap", "bound", "gap", "status", "wall s", "greedy", "expert", "found by; tight bound")
	within, files := 0, 0
	err := given.eachDNN(ctx, func(path string, file *benchfile.DNNPartitioning) error {
		name := workloadName(path)
		if !strings.HasPrefix(name, "latency/") {
			return nil
		}
		a, wall, err := solveLatency(ctx, file, given)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		theirs := publishedLatencies[name]
		if theirs.greedy, err = given.runGreedy(ctx, path, theirs.greedy); err != nil {
			return err
		}
		files++
		within += one(a.Value <= theirs.least())
		status := dnnAnswer{Solution: &graph.Solution{Certificate: a.Certificate}}
		grid.printf(form, name, load(a.Value), load(a.LowerBound), percent(a.Gap()), status.status(), fmt.Sprintf("%.1f", wall.Seconds()),
			load(theirs.greedy), theirs.experts(), a.Method+"; "+a.Bound)
		return errors.Join(grid.err, given.judgeLatency(ctx, path, file, a))
	})
	grid.printf("at or below both splits, where these keep the capacity, on %d of %d files\n", within, files)
	return errors.Join(err, grid.err)
}

func solveLatency(ctx context.Context, file *benchfile.DNNPartitioning, given settings) (*latency.Solution, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, given.limit)
	defer cancel()
	begin := time.Now()
	solution, err := latency.Solve(ctx, pose.Latency(file), graph.Settings{})
	return solution, time.Since(begin), err
}

// latencies are those of the authors' splits by latency-greedy/greedy.cpp
// (alone, and -computeLatency of human-experts); over: the expert's holds more
// on an accelerator than the file allows, which the program warns of.
type latencies struct {
	greedy, expert float64
	over           bool
}

// least is what there is to reach.
func (theirs latencies) least() float64 {
	if theirs.greedy == 0 {
		return math.Inf(1)
	}
	if theirs.expert == 0 || theirs.over {
		return theirs.greedy
	}
	return min(theirs.greedy, theirs.expert)
}

func (theirs latencies) experts() string {
	if theirs.over {
		return load(theirs.expert) + "*"
	}
	return load(theirs.expert)
}

var publishedLatencies = map[string]latencies{
	"latency/LayerGraphs/bert24_inference":       {100.219, 111.937, false},
	"latency/LayerGraphs/gnmt_inference":         {268.5, 293.403, true},
	"latency/LayerGraphs/inceptionv3_inference":  {2485.24, 865.519, true},
	"latency/LayerGraphs/resnet50_inference":     {4197.06, 1014.927, true},
	"latency/OperatorGraphs/bert_l-12_inference": {867.839, 0, false},
	"latency/OperatorGraphs/bert_l-3_inference":  {416.204, 0, false},
	"latency/OperatorGraphs/bert_l-6_inference":  {494.135, 0, false},
	"latency/OperatorGraphs/resnet50_inference":  {839.536, 0, false},
}
