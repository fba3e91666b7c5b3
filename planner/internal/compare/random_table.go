package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// wideTable sets the answers to random graphs side by side.
type wideTable struct {
	table
	gaps   []float64
	proved map[string]int
	// worse are the problems where devmap is behind a peer, by peer.
	worse map[string][]string
	// behind counts those where it is behind CP-SAT or the annealer.
	count, behind int
}

const wideForm = "%-46s %10s %10s %8s %6s %10s %10s %6s %10s %10s %6s %10s %10s\n"

func newWideTable(out io.Writer, wide wideSettings) *wideTable {
	grid := &wideTable{table: table{writer: out}, proved: make(map[string]int), worse: make(map[string][]string)}
	grid.printf("random graphs of %s: largest load in ms, at most %v each, annealers %v\n", wide.list, wide.limit, annealing)
	grid.printf(wideForm, "problem", "devmap", "bound", "gap", "s", "cp-sat", "bound", "s", "highs", "bound", "s", "annealer", "other-mode")
	return grid
}

// peersOf are all that devmap is held to.
var peersOf = []string{cpsat, highsPeer, annealer, otherMode}

// same is how near two values are that count as one: sums round.
const same = 1e-9

func (grid *wideTable) line(line *dags.Line, problem *graph.Problem, answers map[string]*row) error {
	own := answers[ours]
	if own == nil {
		return nil
	}
	values := make(map[string]float64)
	for _, solver := range append([]string{ours}, peersOf...) {
		value, err := answers[solver].value(line, problem, (line.Mode == "contiguous") == (solver != otherMode))
		if err != nil {
			return err
		}
		values[solver] = value
		if answers[solver] != nil && answers[solver].Bound >= value*(1-4*same) {
			grid.proved[solver]++
		}
	}
	gap := own.gap(values[ours])
	grid.count, grid.gaps = grid.count+1, append(grid.gaps, gap)
	grid.compare(line, values, answers)
	cells := []any{line.Name(), unanswered(values[ours]), load(own.Bound), percent(gap), fmt.Sprintf("%.1f", own.Seconds)}
	for _, solver := range peersOf {
		value, bound, seconds := "-", "-", "-"
		if answer := answers[solver]; answer != nil {
			value, bound, seconds = unanswered(values[solver]), load(answer.Bound), fmt.Sprintf("%.1f", answer.Seconds)
		}
		cells = append(cells, value)
		if solver == cpsat || solver == highsPeer {
			cells = append(cells, bound, seconds)
		}
	}
	grid.printf(wideForm, cells...)
	return grid.err
}

// gap is 1 where there is no answer.
func (answer *row) gap(value float64) float64 {
	switch {
	case math.IsInf(value, 1):
		return 1
	case answer.Bound >= value*(1-4*same):
		return 0
	}
	return (value - answer.Bound) / value
}

// compare notes the peers that have a better value. Where contiguous places are
// asked, the other mode has fewer rules and must not do worse for it.
func (grid *wideTable) compare(line *dags.Line, values map[string]float64, answers map[string]*row) {
	behind := false
	for _, solver := range peersOf {
		if answers[solver] == nil {
			continue
		}
		value, theirs := values[ours], values[solver]
		if solver == otherMode && line.Mode == "contiguous" {
			value, theirs = theirs, value
		}
		if theirs < value*(1-same) {
			behind = behind || solver == cpsat || solver == annealer
			grid.worse[solver] = append(grid.worse[solver], fmt.Sprintf("%s by %.2f %%", line.Name(), 100*(value/theirs-1)))
		}
	}
	grid.behind += one(behind)
}

func unanswered(value float64) string {
	if math.IsInf(value, 1) {
		return "none"
	}
	return load(value)
}

// summary has the figures that the trial is held to.
func (grid *wideTable) summary() error {
	if grid.count == 0 {
		return grid.err
	}
	slices.Sort(grid.gaps)
	wide := 0
	for _, gap := range grid.gaps {
		wide += one(gap > 0.1)
	}
	grid.printf("%d problems; proved: devmap %d, CP-SAT %d, HiGHS %d; median gap %s, largest %s, over 10 %% on %d\n", grid.count,
		grid.proved[ours], grid.proved[cpsat], grid.proved[highsPeer], percent(grid.gaps[len(grid.gaps)/2]), percent(grid.gaps[len(grid.gaps)-1]), wide)
	for _, solver := range peersOf {
		grid.printf("behind %s on %d: %v\n", solver, len(grid.worse[solver]), grid.worse[solver])
	}
	grid.printf("behind CP-SAT or the annealer on %d\n", grid.behind)
	return grid.err
}
