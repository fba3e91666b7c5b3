package downset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// solve finds a first answer and then the best one. If a gap is left, it continues until the time
// ends.
func (call *contiguous) solve(ctx context.Context) error {
	err := call.inTurn(ctx)
	if call.Proven() || err != nil && !errors.Is(err, errFull) {
		return err
	}
	if more := call.improve(ctx); more != nil {
		return more
	}
	return err
}

func (call *contiguous) inTurn(ctx context.Context) error {
	for items := range call.extensions(ctx) {
		if err := call.oneOrder(ctx, items); err != nil || call.Proven() {
			return err
		}
		call.single = call.isChain(items)
	}
	if err := call.all(ctx); err != nil || call.Proven() || call.loose == nil {
		return err
	}
	// The leaves joined so far may be better apart.
	fine, err := newOrder(call.Problem, false)
	if err != nil {
		return err
	}
	call.order, call.single = fine, false
	return call.all(ctx)
}

// isChain reports that the extension is the only one.
func (ordered *order) isChain(items []int) bool {
	for i, item := range items[1:] {
		if !slices.Contains(ordered.after[items[i]], item) {
			return false
		}
	}
	return true
}

// all searches every down-set if there are few. Otherwise it searches those with the cheapest cuts,
// more and more of them.
func (call *contiguous) all(ctx context.Context) error {
	sets, err := call.grow(ctx, call.few)
	if err != nil {
		return err
	}
	if sets == nil {
		if err := call.selection(ctx, call.some); err != nil || call.Proven() {
			return err
		}
		if sets, err = call.grow(ctx, call.most); err != nil {
			return err
		}
	}
	if sets != nil {
		return call.complete(ctx, sets)
	}
	for limit := 4 * call.some; limit < call.most; limit *= 4 {
		if err := call.selection(ctx, limit); err != nil {
			return err
		}
	}
	if call.Answer.Place == nil {
		return fmt.Errorf("no placement was found among %d down-sets with cheap cuts; there are more than can be searched, so there may be one", call.most)
	}
	return nil
}

func (call *contiguous) selection(ctx context.Context, limit int) error {
	sets, err := call.growSome(ctx, limit)
	if err != nil || sets == nil {
		return err
	}
	return call.through(ctx, sets, false, fmt.Sprintf("down-sets: the %d with the cheapest cuts, since all are too many", sets.len()))
}

// complete searches a complete lattice for an answer. If leaves were joined, it then searches
// without their sizes for the bound.
func (call *contiguous) complete(ctx context.Context, sets *lattice) error {
	found := fmt.Sprintf("down-sets: all %d, since so many can be searched", sets.len())
	if err := call.through(ctx, sets, false, found); err != nil || call.Proven() {
		return err
	}
	if call.loose != nil {
		return call.through(ctx, sets, true, found)
	}
	if call.Answer.Place == nil {
		err := call.TooLittle(fmt.Sprintf("no %d contiguous parts keep every capacity and run where they are", call.Problem.Devices()))
		err.InOrder = true
		return err
	}
	return nil
}

// through searches a lattice for an answer better than the incumbent, with growing limits. A low
// limit is quickly proved infeasible, and if the lattice has every down-set, such a limit is a
// bound. If leaves were joined, it is a bound only for the relaxed problem with the loose sizes.
func (call *contiguous) through(ctx context.Context, sets *lattice, relaxed bool, method string) error {
	size := call.Size
	if relaxed {
		size = call.loose
	}
	at := newSearch(ctx, call.order, sets, size, call.states)
	proof := sets.complete && (relaxed || call.loose == nil)
	for limit := range rising(call.Answer.LowerBound, call.Answer.Value*(1-graph.Rounding)) {
		found, err := at.run(limit)
		bound := limit
		if found {
			place, largest := at.places()
			call.Take(place, method)
			bound = min(limit, largest*(1-graph.Rounding))
		}
		if err != nil {
			return err
		}
		if proof && !math.IsInf(bound, 1) {
			call.Raise(bound-at.drift, fmt.Sprintf("search: smaller loads were refuted for all %d down-sets", sets.len()))
		}
		if found {
			return nil
		}
	}
	return nil
}

// rising yields limits from a bound up to the best answer, or up to 10,000 times the bound if there
// is none.
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
