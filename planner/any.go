package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// anywhere places units on any device (Problem.Anywhere): it starts from the
// contiguous optimum, moves and swaps units while that lowers the largest
// share, then asks for a smaller one until that is refuted or the time is up.
func (p *Problem) anywhere(ctx context.Context, s Settings) (*Solution, error) {
	sc, err := newScatter(p)
	if err != nil {
		return nil, err
	}
	start, err := p.inOrder(ctx, s)
	if err != nil {
		return nil, err
	}
	if start == nil && sc.tooLarge {
		return nil, fmt.Errorf("planner: %d units and %d devices are too many for any assignment, and the pins leave no contiguous one", len(p.Graph.Units), len(sc.bins))
	}
	a := newAnySearch(ctx, sc, s)
	if start != nil && a.loads != nil {
		a.offer(sc.countsOf(start.Map))
	}
	a.run()
	sol := a.solution(start)
	if err := p.certify(sol.Solution, sol.claim); err != nil {
		return nil, err
	}
	if sol.Value > 1 {
		return sol.Solution, p.infeasibleAnywhere(ctx, sc, sol.Solution)
	}
	return sol.Solution, nil
}

// inOrder is the contiguous optimum; nil where pins and together-groups leave
// no contiguous map.
func (p *Problem) inOrder(ctx context.Context, s Settings) (*claimed, error) {
	q := *p
	q.Anywhere = false
	l, fixed, err := q.layout()
	var pattern *PatternError
	if errors.As(err, &pattern) {
		return nil, nil //nolint:nilnil // no map, and no fault of ours
	} else if err != nil {
		return nil, err
	}
	sol, err := l.solve(ctx, fixed, chain.Settings{Probes: s.Probes})
	var conflict *chain.ConflictError
	if errors.As(err, &conflict) {
		return nil, nil //nolint:nilnil // likewise
	}
	return sol, err
}

// infeasibleAnywhere is infeasible where units go anywhere.
func (p *Problem) infeasibleAnywhere(ctx context.Context, sc *scatter, s *Solution) error {
	w := &s.Devices[s.Bottleneck]
	e := &InfeasibleError{
		Best: s, Form: p.form(), Proved: s.LowerBound > 1, Worst: s.Bottleneck, Budget: w.Budget(),
		Needed: w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes,
	}
	if share, c := sc.largestItem(); c >= 0 && share.Float() > 1 {
		e.TooLarge = sc.nameOf(c)
	} else if len(p.Pins) == 0 {
		e.Devices = p.enough(ctx)
	}
	return e
}
