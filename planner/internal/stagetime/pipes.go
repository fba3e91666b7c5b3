package stagetime

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// pipes solves pipelines. With one stage per device it uses branch and bound for every order of the
// devices. With several it searches for better cuts.
type pipes struct {
	in     *instance.Instance
	orders []pipeOrder
	notes  []string
	partly bool // the context ended before all orders were added
}

// shortest returns the map within the caps with the shortest step. Ties go to the smallest largest
// share.
func (pipeline *pipes) shortest(ctx context.Context, caps []int64, limits instance.Limits) (*instance.Answer, error) {
	if pipeline.in.Schedule().Chunks > 1 {
		return pipeline.looped(ctx, caps, limits)
	}
	stretches := pipeline.stretches(len(caps))
	if stretches > maxStretches {
		return pipeline.balanced(ctx, caps)
	}
	var first *instance.Answer
	if stretches > manyStretches {
		first = pipeline.first(ctx, caps)
	}
	out := instance.NoStep(pipeline.notes, "search")
	searches, complete := pipeline.searches(ctx, caps, out)
	best, all := pipeline.best(ctx, searches, out)
	out.Stopped = ctx.Err() != nil
	out.Proved = complete && all && len(pipeline.notes) == 0
	if first != nil && !out.Proved && (best < 0 || first.Value < searches[best].step(searches[best].best)) {
		return instead(first, out), nil
	}
	if best < 0 {
		return out, instance.ErrNone
	}
	if len(pipeline.notes) > 0 {
		out.LowerBound, out.Bound = pipeline.anyOrder(), "fastest device"
	}
	found := searches[best]
	if out.Proved { // every shorter step is infeasible
		out.LowerBound = max(out.LowerBound, found.step(found.best)*(1-1e-12))
	} else if out.Bound == "search" {
		out.Bound = "busiest stage"
	}
	pipeline.finish(ctx, out, found, found.at)
	if len(pipeline.notes) > 0 {
		out.Settle(ctx, pipeline.in, Method{})
	}
	return out, nil
}

// searches returns the searches of the orders, the most promising first, and sets the bound of all.
// It returns false if the context ended first.
func (pipeline *pipes) searches(ctx context.Context, caps []int64, out *instance.Answer) (all []*pipeSearch, complete bool) {
	complete, out.LowerBound = !pipeline.partly, math.Inf(1)
	for i := range pipeline.orders {
		if ctx.Err() != nil && i > 0 {
			complete = false
			break
		}
		one := pipeline.searchOf(ctx, i, caps)
		if one == nil {
			complete = false
			break
		}
		all = append(all, one)
		out.LowerBound = min(out.LowerBound, one.root()*(1-instance.Tolerance))
	}
	if !complete { // an order that is missing may be better
		out.LowerBound = pipeline.anyOrder()
	}
	slices.SortStableFunc(all, func(a, b *pipeSearch) int { return cmp.Compare(a.root(), b.root()) })
	return all, complete
}

// best runs the searches one after the other, each for a step below the best so far. at is -1 if
// none finds one. complete is false if one reached its limits.
func (pipeline *pipes) best(ctx context.Context, searches []*pipeSearch, out *instance.Answer) (at int, complete bool) {
	at, complete = -1, true
	cutoff := math.Inf(1)
	for i, one := range searches {
		if one.root() >= cutoff {
			break
		}
		one.cutoff = cutoff
		one.search(ctx)
		out.Tried += one.nodes
		complete = complete && !one.ended
		if one.best != nil {
			one.climb(ctx, slices.Clone(one.best))
			at, cutoff = i, one.cutoff
		}
	}
	return at, complete
}

// searchOf returns the search of an order; nil if the context ends before its tables are complete.
func (pipeline *pipes) searchOf(ctx context.Context, i int, caps []int64) *pipeSearch {
	order := &pipeline.orders[i]
	own := make([]int64, len(caps))
	for device, old := range order.order {
		own[device] = caps[old]
	}
	one := newPipeSearch(ctx, order.costs, order.in.TimedSchedule(), pipeline.in.Trains(), own)
	if one != nil {
		one.at = i
	}
	return one
}
