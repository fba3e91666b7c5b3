package graph

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Incumbent is the best answer and the best bound so far.
type Incumbent struct {
	Problem *Problem
	Answer  Solution
	// Progress, if not nil, is called with every better value and bound.
	Progress func(largest, lowerBound float64)
}

// NewIncumbent returns an incumbent without an answer, and with a bound of 0.
func NewIncumbent(problem *Problem, progress func(largest, lowerBound float64)) Incumbent {
	incumbent := Incumbent{Problem: problem, Progress: progress}
	incumbent.Answer.Value = math.Inf(1)
	return incumbent
}

// Rounding is the relative difference allowed between sums in different orders.
const Rounding = 1e-9

// Raise records a lower bound if it is the highest. It lowers the bound by the rounding error.
func (incumbent *Incumbent) Raise(bound float64, why string) {
	if bound *= 1 - Rounding; bound > incumbent.Answer.LowerBound || incumbent.Answer.Bound == "" {
		incumbent.Answer.LowerBound, incumbent.Answer.Bound = max(bound, 0), why
		incumbent.report()
	}
}

// Take records an assignment of the nodes if it is better, by the value of Score: a solver's own
// sums may drift. It reports success.
func (incumbent *Incumbent) Take(place []int, method string) bool {
	_, largest, err := incumbent.Problem.Score(place)
	if err != nil || !(largest < incumbent.Answer.Value) {
		return false
	}
	incumbent.Answer.Place, incumbent.Answer.Value, incumbent.Answer.Method = place, largest, method
	incumbent.report()
	return true
}

func (incumbent *Incumbent) report() {
	if incumbent.Progress != nil {
		incumbent.Progress(incumbent.Answer.Value, incumbent.Answer.LowerBound)
	}
}

// Proven reports that the bound equals the value up to rounding.
func (incumbent *Incumbent) Proven() bool {
	return incumbent.Answer.Value*(1-meets) <= incumbent.Answer.LowerBound
}

// meets is the relative difference at which a bound from [Incumbent.Raise] equals the value.
const meets = 4 * Rounding

// Certify completes an answer: Score evaluates it again on the original problem, and the claim is
// compared with that value.
func (problem *Problem) Certify(solution *Solution, stopped bool) (*Solution, error) {
	_, largest, err := problem.Score(solution.Place)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: solution.Value, LowerBound: solution.LowerBound, Bound: solution.Bound, Rounding: meets, Stopped: stopped}
	if solution.Certificate, err = claim.Certify(largest); err != nil {
		return nil, err
	}
	return solution, nil
}

// TooLittle returns the error for sizes that do not fit together.
func (in *Instance) TooLittle(how string) *InfeasibleError {
	err := &InfeasibleError{Size: Sum(in.Size)}
	for _, kind := range in.Problem.Kinds {
		if kind.Count > 0 {
			err.Capacity += float64(kind.Count) * kind.Capacity
		}
	}
	err.Reason = fmt.Sprintf("the sizes sum to %.0f bytes of %.0f, but %s", err.Size, err.Capacity, how)
	return err
}

// Names returns the names of an item's nodes.
func (in *Instance) Names(item int) []string {
	names := make([]string, 0, len(in.Nodes[item]))
	for _, node := range in.Nodes[item] {
		names = append(names, in.Problem.Nodes[node].Name)
	}
	return names
}
