package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/anyplace"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

func (wide *wideSettings) flags() {
	flag.StringVar(&wide.list, "list", "fixtures/workloads/random/trial.jsonl", "random: the problems")
	flag.StringVar(&wide.rows, "rows", "", "random: file of answers; what is in it is not asked again, and new ones join")
	flag.DurationVar(&wide.limit, "wide-limit", 20*time.Second, "random: time limit of each solver for one problem")
	flag.IntVar(&wide.threads, "threads", 2, "random: threads of CP-SAT and HiGHS; devmap's are GOMAXPROCS")
	flag.IntVar(&wide.workers, "workers", 8, "random: workers of CP-SAT, which share its threads: with fewer than 8 it leaves some of its searches out; 0: as many as threads")
	flag.StringVar(&wide.solvers, "solvers", strings.Join([]string{ours, annealer, cpsat, highsPeer, otherMode}, ","), "random: who is asked, with commas between; empty: nobody, a table of -rows")
	flag.StringVar(&wide.place, "place", "fixtures/peers/place.py", "random: the script that asks CP-SAT and HiGHS")
	flag.StringVar(&wide.python, "python", "", "random: a Python with ortools and highspy; empty: CP-SAT and HiGHS are not asked")
	flag.StringVar(&wide.part, "part", "", "random: i/n, every n-th problem from the i-th on")
}

// The solvers of random graphs, by the names in their rows.
const (
	ours      = "devmap"
	otherMode = "other-mode"
	annealer  = "annealer"
	cpsat     = "cp-sat"
	highsPeer = "highs"
)

// random asks every solver for every problem of a list, and sets the answers
// side by side, each judged by the problem's own form.
func random(ctx context.Context, out io.Writer, given settings) error {
	wide := given.wide
	data, err := os.ReadFile(wide.list)
	if err != nil {
		return err
	}
	lines, err := dags.Read(wide.list, data)
	if err != nil {
		return err
	}
	part, parts := 0, 1
	if wide.part != "" {
		if _, err := fmt.Sscanf(wide.part, "%d/%d", &part, &parts); err != nil || part < 0 || part >= parts {
			return fmt.Errorf("-part %q: want i/n, i from 0 to n-1", wide.part)
		}
	}
	answers, err := openRows(wide.rows)
	if err != nil {
		return err
	}
	defer answers.file.Close() //nolint:errcheck // every row is written by itself
	grid := newWideTable(out, wide)
	for i, line := range lines {
		if i%parts != part {
			continue
		}
		problem, err := line.Problem()
		if err != nil {
			return err
		}
		if err := wide.askAll(ctx, &line, problem, answers); err != nil {
			return err
		}
		if err := grid.line(&line, problem, answers.of[line.Name()]); err != nil {
			return err
		}
	}
	return errors.Join(grid.summary(), grid.err)
}

// askAll fills in the rows that a problem lacks.
func (wide *wideSettings) askAll(ctx context.Context, line *dags.Line, problem *graph.Problem, answers *rows) error {
	for solver := range strings.SplitSeq(wide.solvers, ",") {
		if solver == "" || answers.of[line.Name()][solver] != nil || wide.python == "" && (solver == cpsat || solver == highsPeer) {
			continue
		}
		got, err := wide.ask(ctx, solver, line, problem, answers)
		if err == nil && ctx.Err() == nil {
			err = answers.add(got)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("%s: %s: %w", line.Name(), solver, err)
		}
	}
	return nil
}

func (wide *wideSettings) ask(ctx context.Context, solver string, line *dags.Line, problem *graph.Problem, answers *rows) (*row, error) {
	answer := &row{Problem: line.Name(), Solver: solver}
	begin := time.Now()
	defer func() { answer.Seconds = time.Since(begin).Seconds() }()
	switch solver {
	case cpsat, highsPeer:
		return answer, wide.peer(ctx, answer, line, problem)
	case annealer:
		var start []int
		if own := answers.of[line.Name()][ours]; own != nil {
			start = own.Place
		}
		answer.Place = annealed(problem, line, start, annealing)
		return answer, nil
	case ours, otherMode:
		answer.own(ctx, (line.Mode == "any") == (solver == ours), problem, wide.limit)
		return answer, nil
	}
	return nil, errors.New("no such solver")
}

// annealing is the annealer's time, on a processor each for its two starts.
const annealing = 5 * time.Second

// own is devmap's answer. That there is none is one too, without a place.
func (answer *row) own(ctx context.Context, anywhere bool, problem *graph.Problem, limit time.Duration) {
	solve := downset.Solve
	if anywhere {
		solve = anyplace.Solve
	}
	solution, err := solve(ctx, problem, graph.Settings{TimeLimit: limit})
	if err != nil {
		answer.Status = err.Error()
		return
	}
	answer.Place, answer.Bound, answer.Status, answer.Why = solution.Place, solution.LowerBound, string(solution.Status), solution.Method+" / "+solution.Bound
}
