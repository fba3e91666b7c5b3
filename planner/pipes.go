package planner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// pipes solves pipelines: one stage a device by branch and bound for every
// order of the devices, several by a search for better cuts.
type pipes struct {
	p      *Problem
	orders []pipeOrder
	notes  []string
	partly bool // the context ended before all orders were taken in
}

// shortest implements timed.
func (s *pipes) shortest(ctx context.Context, caps []int64) (*answer, error) {
	if s.p.schedule().Chunks > 1 {
		return s.looped(ctx, caps)
	}
	if items := len(s.orders[0].l.start) - 1; len(s.orders)*len(caps)*items*items > mostStretches {
		return s.balanced(ctx, caps)
	}
	out := &answer{bound: "search", notes: s.notes}
	searches, complete := s.searches(ctx, caps, out)
	best, all := s.best(ctx, searches, out)
	out.stopped = ctx.Err() != nil
	out.proved = complete && all && len(s.notes) == 0
	if best < 0 {
		return out, errNone
	}
	if len(s.notes) > 0 {
		out.lower, out.bound = s.anyOrder(), "fastest device"
	}
	if !out.proved && out.bound == "search" {
		out.bound = "busiest stage"
	}
	found := searches[best]
	if out.proved { // every shorter step was refuted
		out.lower = max(out.lower, found.step(found.best)*(1-1e-12))
	}
	s.finish(ctx, out, found, found.at, caps)
	if len(s.notes) > 0 {
		out.settle(ctx, s.p, caps)
	}
	return out, nil
}

// searches are those of the orders, the most promising first, and the bound
// of all; false where the context ended before they were all made.
func (s *pipes) searches(ctx context.Context, caps []int64, out *answer) (all []*pipeSearch, complete bool) {
	complete, out.lower = !s.partly, math.Inf(1)
	for i := range s.orders {
		if ctx.Err() != nil && i > 0 {
			complete = false
			break
		}
		one := s.searchOf(i, caps)
		all = append(all, one)
		out.lower = min(out.lower, one.root()*(1-tolerance))
	}
	if !complete { // an order that was not looked at may be better
		out.lower = s.anyOrder()
	}
	slices.SortStableFunc(all, func(a, b *pipeSearch) int { return cmp.Compare(a.root(), b.root()) })
	return all, complete
}

// best runs the searches in turn, each for a step below those before; -1
// where none finds one, and false where one came to its limits.
func (s *pipes) best(ctx context.Context, searches []*pipeSearch, out *answer) (at int, complete bool) {
	at, complete = -1, true
	cutoff := math.Inf(1)
	for i, one := range searches {
		if one.root() >= cutoff {
			break
		}
		one.cutoff = cutoff
		one.search(ctx)
		out.tried += one.nodes
		complete = complete && !one.ended
		if one.best != nil {
			one.climb(ctx, slices.Clone(one.best))
			at, cutoff = i, one.cutoff
		}
	}
	return at, complete
}

func (s *pipes) searchOf(i int, caps []int64) *pipeSearch {
	o := &s.orders[i]
	own := make([]int64, len(caps))
	for d, old := range o.order {
		own[d] = caps[old]
	}
	one := newPipeSearch(o.costs, o.p.schedule(), s.p.Costs.Workload.Mode == costmodel.Train, own)
	one.at = i
	return one
}
