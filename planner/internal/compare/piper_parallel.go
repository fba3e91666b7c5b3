package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/parallelstages"
)

// piperParallel cuts Piper's three workloads into stages that take replicas and
// tensor-parallel devices, over the grids of its figures. Where -piper names the
// authors' program, it is run beside, and judges every answer.
func piperParallel(ctx context.Context, grid *table, given settings) error {
	grid.printf("\nPiper's grids, stages replicated and tensor-parallel, a configuration per node, 25 GiB/s: time a sample (BERT-32 s, the others ms)\n")
	grid.printf("Piper's: its program (msr-fiddle/piper d7fc8cf) as it ran on a core of its own; none: no plan fits; > : not done in the seconds given\n")
	const form = "%-10s %5s %5s %12s %12s %8s  %12s %8s  %s\n"
	grid.printf(form, "file", "k", "GiB", "devmap", "bound", "s", "Piper", "s", "")
	below, worse, proved, rows := 0, 0, 0, 0
	for _, row := range piperGrid {
		answer, err := given.piperRow(ctx, row)
		if err != nil {
			return err
		}
		theirs, seconds := row.theirs, row.seconds
		if given.piper != "" {
			if theirs, seconds, err = given.authorsPiper(ctx, row, ""); err != nil {
				return err
			}
		}
		rows++
		proved += one(answer.proved)
		const digits = 1e-9
		below += one(theirs > 0 && answer.value > 0 && answer.value < theirs*(1-digits) || theirs == 0 && answer.value > 0)
		worse += one(theirs > 0 && (answer.value > theirs*(1+digits) || answer.value == 0))
		peer, took := cell(theirs), fmt.Sprintf("%.1f", seconds)
		if theirs < 0 {
			peer, took = "", "> "+took
		}
		grid.printf(form, row.file, strconv.Itoa(row.devices), fmt.Sprint(row.memory), cell(answer.value), cell(answer.bound), fmt.Sprintf("%.2f", answer.seconds), peer, took, answer.said)
	}
	grid.printf("%d rows: %d proved, %d below Piper's, %d above it\n", rows, proved, below, worse)
	return grid.err
}

// cell prints a time, 0 for that of no plan.
func cell(time float64) string {
	if time == 0 {
		return "none"
	}
	return fmt.Sprintf("%.8g", time)
}

// piperAnswer is what devmap makes of a row; value 0: no plan fits.
type piperAnswer struct {
	value, bound, seconds float64
	proved                bool
	said                  string
}

func (given *settings) piperRow(ctx context.Context, row piperProblem) (*piperAnswer, error) {
	path := row.path()
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := pose.Read[*benchfile.Piper](path, data)
	if err != nil {
		return nil, err
	}
	const gib = 1 << 30
	problem, err := pose.ParallelPiper(file, row.devices, row.memory*gib, 25*gib, 0, 0)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	got, err := parallelstages.Solve(ctx, problem, parallelstages.Settings{TimeLimit: given.limit})
	seconds := time.Since(begin).Seconds()
	var none *parallelstages.InfeasibleError
	switch {
	case errors.As(err, &none):
		return &piperAnswer{seconds: seconds, proved: none.Proved, said: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	said := fmt.Sprintf("%s, %d stages", got.Status, len(got.Stages))
	if !got.Optimal() {
		said += fmt.Sprintf(", gap %.2f %%; %s", 100*got.Gap(), got.Bound)
	}
	return &piperAnswer{got.Value, got.LowerBound, seconds, got.Optimal(), said}, given.judgePiper(ctx, row, file, got)
}

// judgePiper has the authors' getTPSForResult judge a plan.
func (given *settings) judgePiper(ctx context.Context, row piperProblem, file *benchfile.Piper, got *parallelstages.Solution) error {
	if given.piper == "" {
		return nil
	}
	plan, err := os.CreateTemp("", "plan*.json")
	if err != nil {
		return err
	}
	defer os.Remove(plan.Name()) //nolint:errcheck // a temporary file
	if err := errors.Join(pose.WriteParallelPiper(plan, file, &got.Plan), plan.Close()); err != nil {
		return err
	}
	theirs, _, err := given.authorsPiper(ctx, row, plan.Name())
	if err != nil {
		return err
	}
	if theirs > got.Value*(1+1e-9) || theirs < got.Value*(1-1e-9) {
		return fmt.Errorf("%s, %d devices of %v GiB: the authors' scorer gives %v where we have %v", row.file, row.devices, row.memory, theirs, got.Value)
	}
	return nil
}

// authorsPiper runs the authors' planner on a row, or their scorer on a plan of
// it: the time a sample, 0 where no plan fits, −1 where the time was up.
func (given *settings) authorsPiper(ctx context.Context, row piperProblem, plan string) (value, seconds float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, given.limit)
	defer cancel()
	args := []string{row.path(), strconv.Itoa(row.devices), fmt.Sprint(row.memory)}
	if plan != "" {
		args = append(args, plan)
	}
	begin := time.Now()
	said, err := exec.CommandContext(ctx, given.piper, args...).Output() //nolint:gosec // the user's own program
	seconds = time.Since(begin).Seconds()
	if ctx.Err() != nil {
		return -1, seconds, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("the authors' program: %w", err)
	}
	lines := strings.Fields(string(said))
	if len(lines) == 0 {
		return 0, 0, errors.New("the authors' program says nothing")
	}
	if value, err = strconv.ParseFloat(lines[len(lines)-1], 64); value >= 1e30 {
		value = 0
	}
	return value, seconds, err
}

// piperProblem is a row of a grid, with what Piper's program said of it and the
// seconds it took: 0 no plan fits, −1 it was not done in these seconds.
type piperProblem struct {
	file            string
	devices         int
	memory          float64 // GiB
	theirs, seconds float64
}

func (row piperProblem) path() string {
	return filepath.FromSlash("fixtures/workloads/piper/" + row.file + ".json")
}
