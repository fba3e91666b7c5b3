package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/anyplace"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// solver is downset.Solve or anyplace.Solve.
type solver func(context.Context, *graph.Problem, graph.Settings) (*graph.Solution, error)

// contiguous proves the least largest load of every dnn-partitioning file,
// beside the authors' program where -dp names it.
func contiguous(ctx context.Context, out io.Writer, given settings) error {
	grid := &table{writer: out}
	grid.printf("dnn-partitioning, contiguous: largest load in ms; CPU seconds\n")
	const form = "%-46s %9s %9s %8s %-9s %7s %9s %s\n"
	grid.printf(form, "file", "devmap", "bound", "gap", "status", "CPU s", "authors", "their CPU s (-dp)")
	return given.eachDNN(ctx, func(path string, file *benchfile.DNNPartitioning) error {
		a, err := solveDNN(ctx, downset.Solve, file, given)
		if err != nil {
			return err
		}
		p := publishedLoads[workloadName(path)]
		theirs := given.authors(ctx, path)
		grid.printf(form, workloadName(path), load(a.Value), load(a.LowerBound), percent(a.Gap()), a.status(), fmt.Sprintf("%.2f", a.cpu.Seconds()), load(p.contiguous), theirs)
		return errors.Join(grid.err, given.judge(ctx, path, file, a.Place))
	})
}

// anyAssignment finds and bounds the least largest load without contiguity, of the files
// that are posed for latency too.
func anyAssignment(ctx context.Context, out io.Writer, given settings) error {
	grid := &table{writer: out}
	grid.printf("dnn-partitioning, any assignment: largest load in ms, at most %v each\n", given.limit)
	const form = "%-46s %9s %9s %8s %-9s %7s %10s %10s  %s\n"
	grid.printf(form, "file", "devmap", "bound", "gap", "status", "wall s", "annealing", "contiguous", "tight bound")
	within, files := 0, 0
	err := given.eachDNN(ctx, func(path string, file *benchfile.DNNPartitioning) error {
		a, err := solveDNN(ctx, anyplace.Solve, file, given)
		if err != nil {
			return err
		}
		files++
		within += one(a.Gap() <= .05)
		p := publishedLoads[workloadName(path)]
		grid.printf(form, workloadName(path), load(a.Value), load(a.LowerBound), percent(a.Gap()), a.status(), fmt.Sprintf("%.1f", a.wall.Seconds()), load(p.annealed), load(cmp.Or(p.contiguous, p.linear)), a.Bound)
		return errors.Join(grid.err, given.judge(ctx, path, file, a.Place))
	})
	grid.printf("a gap of at most 5 %% on %d of %d files\n", within, files)
	return errors.Join(err, grid.err)
}

// dnnAnswer is a solution and what it took.
type dnnAnswer struct {
	*graph.Solution
	cpu, wall time.Duration
}

func (a *dnnAnswer) status() string {
	switch {
	case a.Optimal():
		return "optimal"
	case a.Early():
		return "stopped"
	}
	return "feasible"
}

func solveDNN(ctx context.Context, solve solver, file *benchfile.DNNPartitioning, given settings) (*dnnAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, given.limit)
	defer cancel()
	problem := pose.DNNPartitioning(file)
	begin, used := time.Now(), cpuTime()
	sol, err := solve(ctx, problem, graph.Settings{})
	if err != nil {
		return nil, err
	}
	a := &dnnAnswer{sol, cpuTime() - used, time.Since(begin)}
	_, largest, err := problem.Score(sol.Place)
	if err != nil || math.Abs(largest-sol.Value) > 1e-9*largest {
		return nil, fmt.Errorf("the score says %v, the solver %v: %w", largest, sol.Value, err)
	}
	return a, nil
}

// eachDNN reads every file below -dnn in the order of its name.
func (given *settings) eachDNN(ctx context.Context, f func(string, *benchfile.DNNPartitioning) error) error {
	var paths []string
	err := filepath.WalkDir(given.dnn, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".json" {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := pose.Read[*benchfile.DNNPartitioning](path, data)
		if err == nil {
			err = f(path, file)
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

func load(value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", value)
}

func percent(value float64) string { return fmt.Sprintf("%.2f %%", 100*value) }
