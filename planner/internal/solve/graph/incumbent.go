package graph

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Incumbent is the best answer and the best bound so far.
type Incumbent struct {
	Problem  *Problem
	Settings Settings
	Answer   Solution
}

func NewIncumbent(p *Problem, set Settings) Incumbent {
	c := Incumbent{Problem: p, Settings: set}
	c.Answer.Value = math.Inf(1)
	return c
}

// Rounding covers the difference between sums taken in different orders.
const Rounding = 1e-9

// Raise takes a lower bound; rounding may have lifted it a little.
func (c *Incumbent) Raise(bound float64, why string) {
	if bound *= 1 - Rounding; bound > c.Answer.LowerBound || c.Answer.Bound == "" {
		c.Answer.LowerBound, c.Answer.Bound = max(bound, 0), why
		c.tell()
	}
}

// Take takes an assignment of the nodes where it is better, as Score finds:
// what a solver has summed up itself may have drifted.
func (c *Incumbent) Take(place []int, method string) bool {
	_, largest, err := c.Problem.Score(place)
	if err != nil || !(largest < c.Answer.Value) {
		return false
	}
	c.Answer.Place, c.Answer.Value, c.Answer.Method = place, largest, method
	c.tell()
	return true
}

func (c *Incumbent) tell() {
	if c.Settings.Progress != nil {
		c.Settings.Progress(c.Answer.Value, c.Answer.LowerBound)
	}
}

// Proven: the bounds meet, but for rounding.
func (c *Incumbent) Proven() bool {
	return c.Answer.Value*(1-meets) <= c.Answer.LowerBound
}

// meets is how near a bound that [Incumbent.Raise] took must be to be met.
const meets = 4 * Rounding

// Certify ends an answer: Score judges it once more, of the problem as it was
// posed, and the bound is held against what it finds.
func (p *Problem) Certify(s *Solution, stopped bool) (*Solution, error) {
	_, largest, err := p.Score(s.Place)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: s.Value, LowerBound: s.LowerBound, Bound: s.Bound, Rounding: meets, Stopped: stopped}
	if s.Certificate, err = claim.Certify(largest); err != nil {
		return nil, err
	}
	return s, nil
}

// TooLittle says that the sizes are the trouble, together.
func (in *Instance) TooLittle(how string) *InfeasibleError {
	e := &InfeasibleError{Size: Sum(in.Size)}
	for _, k := range in.Problem.Kinds {
		if k.Count > 0 {
			e.Capacity += float64(k.Count) * k.Capacity
		}
	}
	e.Reason = fmt.Sprintf("the sizes sum to %.0f bytes of %.0f, but %s", e.Size, e.Capacity, how)
	return e
}

// Names are those of an item's nodes.
func (in *Instance) Names(item int) []string {
	names := make([]string, 0, len(in.Nodes[item]))
	for _, v := range in.Nodes[item] {
		names = append(names, in.Problem.Nodes[v].Name)
	}
	return names
}
