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
	"strings"
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
func contiguous(ctx context.Context, out io.Writer, s settings) error {
	t := &table{w: out}
	t.printf("dnn-partitioning, contiguous: largest load in ms; CPU seconds\n")
	const form = "%-46s %9s %9s %8s %-9s %7s %9s %s\n"
	t.printf(form, "file", "devmap", "bound", "gap", "status", "CPU s", "authors", "their CPU s (-dp)")
	return s.eachDNN(ctx, func(path string, w *benchfile.DNNPartitioning) error {
		a, err := solveDNN(ctx, downset.Solve, w, s)
		if err != nil {
			return err
		}
		p := publishedLoads[workloadName(path)]
		theirs := s.authors(ctx, path)
		t.printf(form, workloadName(path), load(a.Value), load(a.LowerBound), percent(a.Gap()), a.status(), fmt.Sprintf("%.2f", a.cpu.Seconds()), load(p.contiguous), theirs)
		return errors.Join(t.err, s.judge(ctx, path, w, a.Place))
	})
}

// anyAssignment finds and bounds the least largest load without contiguity.
func anyAssignment(ctx context.Context, out io.Writer, s settings) error {
	t := &table{w: out}
	t.printf("dnn-partitioning, any assignment: largest load in ms, at most %v each\n", s.limit)
	const form = "%-46s %9s %9s %8s %-9s %7s %10s %10s  %s\n"
	t.printf(form, "file", "devmap", "bound", "gap", "status", "wall s", "annealing", "contiguous", "tight bound")
	within, files := 0, 0
	err := s.eachDNN(ctx, func(path string, w *benchfile.DNNPartitioning) error {
		if strings.HasPrefix(workloadName(path), "latency/") {
			return nil
		}
		a, err := solveDNN(ctx, anyplace.Solve, w, s)
		if err != nil {
			return err
		}
		files++
		within += one(a.Gap() <= .05)
		p := publishedLoads[workloadName(path)]
		t.printf(form, workloadName(path), load(a.Value), load(a.LowerBound), percent(a.Gap()), a.status(), fmt.Sprintf("%.1f", a.wall.Seconds()), load(p.annealed), load(cmp.Or(p.contiguous, p.linear)), a.Bound)
		return errors.Join(t.err, s.judge(ctx, path, w, a.Place))
	})
	t.printf("a gap of at most 5 %% on %d of %d files\n", within, files)
	return errors.Join(err, t.err)
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

func solveDNN(ctx context.Context, solve solver, w *benchfile.DNNPartitioning, s settings) (*dnnAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	p := pose.DNNPartitioning(w)
	begin, used := time.Now(), cpuTime()
	sol, err := solve(ctx, p, graph.Settings{})
	if err != nil {
		return nil, err
	}
	a := &dnnAnswer{sol, cpuTime() - used, time.Since(begin)}
	_, largest, err := p.Score(sol.Place)
	if err != nil || math.Abs(largest-sol.Value) > 1e-9*largest {
		return nil, fmt.Errorf("the score says %v, the solver %v: %w", largest, sol.Value, err)
	}
	return a, nil
}

// eachDNN reads every file below -dnn in the order of its name.
func (s *settings) eachDNN(ctx context.Context, f func(string, *benchfile.DNNPartitioning) error) error {
	var paths []string
	err := filepath.WalkDir(s.dnn, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".json" {
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
		w, err := pose.Read[*benchfile.DNNPartitioning](path, data)
		if err == nil {
			err = f(path, w)
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

func load(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
