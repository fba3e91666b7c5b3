package stagetime

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// pipes solves pipelines: one stage a device by branch and bound for every
// order of the devices, several by a search for better cuts.
type pipes struct {
	in     *instance.Instance
	orders []pipeOrder
	notes  []string
	partly bool // the context ended before all orders were taken in
}

// shortest is the map with the shortest step, of those the one with the
// smallest largest share, within the caps.
func (s *pipes) shortest(ctx context.Context, caps []int64) (*instance.Answer, error) {
	if s.in.Schedule().Chunks > 1 {
		return s.looped(ctx, caps)
	}
	if items := s.orders[0].peaks.Count(); len(s.orders)*len(caps)*items*items > mostStretches {
		return s.balanced(ctx, caps)
	}
	out := newAnswer(s.notes, "search")
	searches, complete := s.searches(ctx, caps, out)
	best, all := s.best(ctx, searches, out)
	out.Stopped = ctx.Err() != nil
	out.Proved = complete && all && len(s.notes) == 0
	if best < 0 {
		return out, instance.ErrNone
	}
	if len(s.notes) > 0 {
		out.LowerBound, out.Bound = s.anyOrder(), "fastest device"
	}
	if !out.Proved && out.Bound == "search" {
		out.Bound = "busiest stage"
	}
	found := searches[best]
	if out.Proved { // every shorter step was refuted
		out.LowerBound = max(out.LowerBound, found.step(found.best)*(1-1e-12))
	}
	s.finish(ctx, out, found, found.at)
	if len(s.notes) > 0 {
		out.Settle(ctx, s.in, Method{})
	}
	return out, nil
}

// searches are those of the orders, the most promising first, and the bound
// of all; false where the context ended before they were all made.
func (s *pipes) searches(ctx context.Context, caps []int64, out *instance.Answer) (all []*pipeSearch, complete bool) {
	complete, out.LowerBound = !s.partly, math.Inf(1)
	for i := range s.orders {
		if ctx.Err() != nil && i > 0 {
			complete = false
			break
		}
		one := s.searchOf(i, caps)
		all = append(all, one)
		out.LowerBound = min(out.LowerBound, one.root()*(1-instance.Tolerance))
	}
	if !complete { // an order that was not looked at may be better
		out.LowerBound = s.anyOrder()
	}
	slices.SortStableFunc(all, func(a, b *pipeSearch) int { return cmp.Compare(a.root(), b.root()) })
	return all, complete
}

// best runs the searches in turn, each for a step below those before; -1
// where none finds one, and false where one came to its limits.
func (s *pipes) best(ctx context.Context, searches []*pipeSearch, out *instance.Answer) (at int, complete bool) {
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

func (s *pipes) searchOf(i int, caps []int64) *pipeSearch {
	o := &s.orders[i]
	own := make([]int64, len(caps))
	for d, old := range o.order {
		own[d] = caps[old]
	}
	one := newPipeSearch(o.costs, o.in.Schedule(), s.in.Trains(), own)
	one.at = i
	return one
}
