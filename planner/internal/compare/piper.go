package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// piper cuts BERT-32 into straight pipelines, recomputation chosen per layer, and
// then Piper's workloads into parallel stages.
func piper(ctx context.Context, out io.Writer, given settings) error {
	const file, gib = "fixtures/workloads/piper/bert32a100.json", 1 << 30
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		return err
	}
	w, err := pose.Read[*benchfile.Piper](file, data)
	if err != nil {
		return err
	}
	grid := &table{writer: out}
	grid.printf("Piper BERT-32, straight pipelines, 25 GiB/s: seconds a sample; Piper's with both parallelisms off\n")
	grid.printf("%4s %4s %10s %10s %10s %8s  %s\n", "GiB", "k", "devmap", "bound", "Piper", "ms", "")
	for _, row := range []struct {
		memory, devices int
		theirs          float64 // 0: it finds none
	}{
		{8, 8, 0.165856},
		{8, 16, 0.100427},
		{8, 32, 0.073906},
		{80, 8, 0.164516},
		{80, 16, 0.099749},
		{80, 32, 0.073906},
		{1, 64, 0},
		{2, 64, 0},
	} {
		problem, err := pose.Piper(w, row.devices, float64(row.memory)*gib, 25*gib)
		if err != nil {
			return err
		}
		begin := time.Now()
		got, err := stages.Solve(ctx, problem, stages.Settings{TimeLimit: given.limit})
		ms := time.Since(begin).Seconds() * 1e3
		var none *stages.InfeasibleError
		switch {
		case errors.As(err, &none):
			grid.printf("%4d %4d %10s %10s %10s %8.1f  %v\n", row.memory, row.devices, "none", "", "none", ms, err)
		case err != nil:
			return err
		default:
			grid.printf("%4d %4d %10.6f %10.6f %10.6f %8.1f  %s; %s\n", row.memory, row.devices, got.Value, got.LowerBound, row.theirs, ms, pipelineProof(got), got.Bound)
		}
	}
	return piperParallel(ctx, grid, given)
}

// pipelineProof is how good a pipeline is known to be.
func pipelineProof(solution *stages.Solution) string {
	if solution.Optimal() {
		return "optimal"
	}
	return fmt.Sprintf("gap %.2f %%", 100*solution.Gap())
}
