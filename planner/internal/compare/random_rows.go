package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// row is one solver's answer to one problem.
type row struct {
	Problem string  `json:"problem"`
	Solver  string  `json:"solver"`
	Place   []int   `json:"place"` // none: no answer
	Bound   float64 `json:"bound"`
	Status  string  `json:"status"`
	Why     string  `json:"why,omitempty"`
	Seconds float64 `json:"seconds"`
}

// rows are the answers that there are, and the file that new ones join.
type rows struct {
	file *os.File
	of   map[string]map[string]*row // by problem, then solver
}

// openRows reads a file of rows; no name is a file that is not kept. The last
// row of a problem and solver counts.
func openRows(path string) (*rows, error) {
	answers := &rows{of: make(map[string]map[string]*row)}
	if path == "" {
		return answers, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for number, text := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var known row
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &known); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number+1, err)
		}
		answers.keep(&known)
	}
	answers.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	return answers, err
}

func (answers *rows) keep(known *row) {
	if answers.of[known.Problem] == nil {
		answers.of[known.Problem] = make(map[string]*row)
	}
	answers.of[known.Problem][known.Solver] = known
}

// add keeps a row and writes it out at once: a run may be cut short.
func (answers *rows) add(known *row) error {
	answers.keep(known)
	if answers.file == nil {
		return nil
	}
	text, err := json.Marshal(known)
	if err == nil {
		_, err = answers.file.Write(append(text, '\n'))
	}
	return err
}

// value judges a row's answer: the largest load, +Inf where there is none. An
// answer that breaks a rule is an error.
func (answer *row) value(line *dags.Line, problem *graph.Problem, contiguous bool) (float64, error) {
	if answer == nil || answer.Place == nil {
		return math.Inf(1), nil
	}
	_, largest, err := problem.Score(answer.Place)
	if err == nil && contiguous {
		forward := make(map[int]bool)
		for _, node := range problem.Nodes {
			forward[node.Group] = forward[node.Group] || !node.Backward
		}
		if !graphtest.InSomeOrder(problem, answer.Place, forward) {
			err = errors.New("the devices cannot be put in an order")
		}
	}
	if err == nil && answer.Bound > largest*(1+1e-9) {
		err = fmt.Errorf("a bound of %v over a value of %v", answer.Bound, largest)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: the answer of %s: %w", line.Name(), answer.Solver, err)
	}
	return largest, nil
}

// peer asks CP-SAT or HiGHS through fixtures/peers/place.py, whose clock runs
// for the search alone.
func (wide *wideSettings) peer(ctx context.Context, answer *row, line *dags.Line, problem *graph.Problem) error {
	args := []string{wide.place, answer.Solver, line.Mode, fmt.Sprint(wide.limit.Seconds()), strconv.Itoa(wide.threads)}
	if wide.workers > 0 {
		args = append(args, strconv.Itoa(wide.workers))
	}
	cmd := exec.CommandContext(ctx, wide.python, args...) //nolint:gosec // the user's own program
	cmd.Stdin, cmd.Stderr = bytes.NewReader(dags.File(problem)), os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, answer)
	}
	return err
}
