package downset

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// solve finds a first answer and then the best one. Where all that it does in
// turn leaves a gap, it goes on with what time there is.
func (s *contiguous) solve(ctx context.Context) error {
	err := s.inTurn(ctx)
	if s.Proven() || err != nil && !errors.Is(err, errFull) {
		return err
	}
	if more := s.more(ctx); more != nil {
		return more
	}
	return err
}

func (s *contiguous) inTurn(ctx context.Context) error {
	for items := range s.extensions(ctx) {
		if err := s.oneOrder(ctx, items); err != nil || s.Proven() {
			return err
		}
	}
	if err := s.all(ctx); err != nil || s.Proven() || s.loose == nil {
		return err
	}
	// Leaves were joined that may be better apart.
	fine, err := newOrder(s.Problem, false)
	if err != nil {
		return err
	}
	s.order = fine
	return s.all(ctx)
}

// all searches every down-set; where they are many, a selection before, and
// where they are too many, larger and larger ones.
func (s *contiguous) all(ctx context.Context) error {
	l, err := s.grow(ctx, s.few)
	if err != nil {
		return err
	}
	if l != nil {
		s.single = l.len() == len(s.Nodes)+1
		return s.complete(ctx, l)
	}
	if err := s.selection(ctx, s.some); err != nil || s.Proven() {
		return err
	}
	if l, err = s.grow(ctx, s.most); err != nil {
		return err
	}
	if l != nil {
		return s.complete(ctx, l)
	}
	for limit := 4 * s.some; limit < s.most; limit *= 4 {
		if err := s.selection(ctx, limit); err != nil {
			return err
		}
	}
	if s.Answer.Place == nil {
		return fmt.Errorf("no placement was found among %d down-sets with cheap cuts; there are more than can be searched, so there may be one", s.most)
	}
	return nil
}

func (s *contiguous) selection(ctx context.Context, limit int) error {
	l, err := s.growSome(ctx, limit)
	if err != nil || l == nil {
		return err
	}
	return s.through(ctx, l, false, fmt.Sprintf("down-sets: the %d with the cheapest cuts, since all are too many", l.len()))
}

// complete searches a complete lattice: first for an answer, then, where
// leaves' sizes were joined, without these sizes for the bound.
func (s *contiguous) complete(ctx context.Context, l *lattice) error {
	found := fmt.Sprintf("down-sets: all %d, since so many can be searched", l.len())
	if err := s.through(ctx, l, false, found); err != nil || s.Proven() {
		return err
	}
	if s.loose != nil {
		return s.through(ctx, l, true, found)
	}
	if s.Answer.Place == nil {
		e := s.TooLittle(fmt.Sprintf("no %d contiguous parts keep every capacity and run where they are", s.Problem.Devices()))
		e.InOrder = true
		return e
	}
	return nil
}

// through searches a lattice for an answer that is better than the one at
// hand, with growing limits: a low one is quick to refute, and each one that
// is refuted with every down-set there is a bound. Where leaves were joined it
// is one for the relaxed problem alone, which has the loose sizes.
func (s *contiguous) through(ctx context.Context, l *lattice, relaxed bool, method string) error {
	size := s.Size
	if relaxed {
		size = s.loose
	}
	at := newSearch(ctx, s.order, l, size, s.states)
	proof := l.complete && (relaxed || s.loose == nil)
	for limit := range rising(s.Answer.LowerBound, s.Answer.Value*(1-graph.Rounding)) {
		found, err := at.run(limit)
		bound := limit
		if found {
			place, largest := at.places()
			s.Take(place, method)
			bound = min(limit, largest*(1-graph.Rounding))
		}
		if err != nil {
			return err
		}
		if proof && !math.IsInf(bound, 1) {
			s.Raise(bound-at.drift, fmt.Sprintf("search: smaller loads were refuted for all %d down-sets", l.len()))
		}
		if found {
			return nil
		}
	}
	return nil
}

// rising goes from a bound to the best answer, or without end.
func rising(bound, top float64) func(func(float64) bool) {
	return func(yield func(float64) bool) {
		if !math.IsInf(top, 1) {
			_ = yield(bound+0.3*(top-bound)) && yield(top)
			return
		}
		for limit := bound * 1.25; limit < bound*1e4; limit *= 1.5 {
			if !yield(limit) {
				return
			}
		}
		yield(math.Inf(1))
	}
}
