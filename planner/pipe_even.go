package planner

import "context"

// evenOrders is up to how many orders the largest share is made small for a
// step; above, it is made small for the order that was found.
const evenOrders = 120

// finish lowers the largest share while the step stays, and sets the map.
func (s *pipes) finish(ctx context.Context, out *answer, found *pipeSearch, at int, caps []int64) {
	cuts, cutoff := found.best, found.step(found.best)*(1+1e-12)
	lo, hi := 0., s.orders[at].share(cuts)
	others := []int{at}
	out.even = true
	if len(s.orders) <= evenOrders {
		for i := range s.orders {
			if i != at {
				others = append(others, i)
			}
		}
	} else {
		out.even = false
	}
	for hi-lo > tolerance*hi && ctx.Err() == nil {
		mid := lo + (hi-lo)/2
		i, one := s.under(ctx, others, s.p.capsBelow(mid, caps), cutoff, out)
		if one == nil {
			lo = mid
			continue
		}
		at, cuts, hi = i, one, s.orders[i].share(one)
	}
	out.even = out.even && ctx.Err() == nil
	o := &s.orders[at]
	out.m, out.step = restored(o.unitMap(cuts), o.order), o.costs.step(cuts)
}

// under finds cuts within the caps whose step is below the cutoff, in any of
// the orders.
func (s *pipes) under(ctx context.Context, orders []int, caps []int64, cutoff float64, out *answer) (order int, cuts []int) {
	for _, i := range orders {
		if ctx.Err() != nil {
			out.even = false
			break
		}
		one := s.searchOf(i, caps)
		one.cutoff, one.first = cutoff, true
		if one.root() < cutoff {
			one.search(ctx)
		}
		out.tried += one.nodes
		if one.best != nil {
			return i, one.best
		}
		out.even = out.even && !one.ended
	}
	return 0, nil
}
