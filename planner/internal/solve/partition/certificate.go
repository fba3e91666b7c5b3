package partition

import (
	"fmt"
	"math"

	proof "github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// certificate is the best answer and the best bound so far.
type certificate struct {
	p   *Problem
	set Settings
	sol Solution
}

func newCertificate(p *Problem, set Settings) certificate {
	return certificate{p: p, set: set, sol: Solution{Largest: math.Inf(1)}}
}

// rounding covers the difference between sums taken in different orders.
const rounding = 1e-9

// raise takes a lower bound; rounding may have lifted it a little.
func (c *certificate) raise(bound float64, why string) {
	if bound *= 1 - rounding; bound > c.sol.LowerBound || c.sol.Bound == "" {
		c.sol.LowerBound, c.sol.Bound = max(bound, 0), why
		c.tell()
	}
}

// take takes an assignment of the nodes where it is better, as Score finds:
// what a solver has summed up itself may have drifted.
func (c *certificate) take(place []int, method string) bool {
	_, largest, err := c.p.Score(place)
	if err != nil || !(largest < c.sol.Largest) {
		return false
	}
	c.sol.Place, c.sol.Largest, c.sol.Method = place, largest, method
	c.tell()
	return true
}

func (c *certificate) tell() {
	if c.set.Progress != nil {
		c.set.Progress(c.sol.Largest, c.sol.LowerBound)
	}
}

// proven: the bounds meet, but for rounding.
func (c *certificate) proven() bool {
	return c.sol.Largest*(1-meets) <= c.sol.LowerBound
}

// meets is how near a bound that [certificate.raise] took must be to be met.
const meets = 4 * rounding

// certify ends an answer: Score judges it once more, of the problem as it was
// posed, and the bound is held against what it finds.
func (p *Problem) certify(s *Solution, stopped bool) (*Solution, error) {
	_, largest, err := p.Score(s.Place)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	proved, err := proof.Claim{Value: s.Largest, LowerBound: s.LowerBound, Bound: s.Bound, Rounding: meets, Stopped: stopped}.Certify(largest)
	if err != nil {
		return nil, err
	}
	s.Largest, s.LowerBound, s.Status = proved.Value, proved.LowerBound, proved.Status
	s.Optimal, s.Stopped = s.Status == proof.Optimal, s.Status == proof.LimitReached
	return s, nil
}

// nothing says that the sizes are the trouble, together.
func (in *instance) nothing(how string) *InfeasibleError {
	e := &InfeasibleError{Size: sum(in.size)}
	for _, k := range in.p.Kinds {
		if k.Count > 0 {
			e.Capacity += float64(k.Count) * k.Capacity
		}
	}
	e.Reason = fmt.Sprintf("the sizes sum to %.0f bytes of %.0f, but %s", e.Size, e.Capacity, how)
	return e
}

// names are those of an item's nodes.
func (in *instance) names(item int) []string {
	names := make([]string, 0, len(in.nodes[item]))
	for _, v := range in.nodes[item] {
		names = append(names, in.p.Nodes[v].Name)
	}
	return names
}
