package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// pipeDream cuts profiles into straight pipelines by compute alone.
func pipeDream(ctx context.Context, out io.Writer, given settings) error {
	grid := &table{writer: out}
	grid.printf("PipeDream's straight pipelines: seconds of compute of the slowest stage, forward and backward\n")
	grid.printf("%-9s %3s %9s %9s %9s %8s  %s\n", "graph", "k", "devmap", "bound", "PipeDream", "ms", "")
	for _, row := range []struct {
		name    string
		devices int
		theirs  float64
	}{
		{"vgg16", 4, 0.21645},
		{"vgg16", 8, 0.15953},
		{"resnet50", 4, 0.11150},
		{"gnmt", 4, 0.02587},
	} {
		file := "fixtures/workloads/pipedream/" + row.name + ".graph.txt"
		data, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			return err
		}
		w, err := pose.Read[*benchfile.PipeDream](file, data)
		if err != nil {
			return err
		}
		begin := time.Now()
		got, err := stages.Solve(ctx, pose.PipeDream(w, row.devices), stages.Settings{TimeLimit: given.limit})
		if err != nil {
			return err
		}
		grid.printf("%-9s %3d %9.6f %9.6f %9.5f %8.1f  %s; %s\n", row.name, row.devices, got.Value, got.LowerBound, row.theirs,
			time.Since(begin).Seconds()*1e3, pipelineProof(got), got.Bound)
	}
	return grid.err
}
