package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// evenOrders is the most orders for which finish lowers the largest share in every order. Above
// that, it uses only the order of the answer.
const evenOrders = 120

// finish lowers the largest share without a longer step, and sets the map.
func (pipeline *pipes) finish(ctx context.Context, out *instance.Answer, found *pipeSearch, at int) {
	cuts, cutoff := found.best, found.step(found.best)*(1+1e-12)
	lo, hi := 0., pipeline.orders[at].share(cuts)
	others := []int{at}
	out.EvenProved = true
	if len(pipeline.orders) <= evenOrders {
		for i := range pipeline.orders {
			if i != at {
				others = append(others, i)
			}
		}
	} else {
		out.EvenProved = false
	}
	for hi-lo > instance.Tolerance*hi && ctx.Err() == nil {
		mid := lo + (hi-lo)/2
		i, one := pipeline.under(ctx, others, pipeline.in.CapsBelow(mid), cutoff, out)
		if one == nil {
			lo = mid
			continue
		}
		at, cuts, hi = i, one, pipeline.orders[i].share(one)
	}
	out.EvenProved = out.EvenProved && ctx.Err() == nil
	order := &pipeline.orders[at]
	out.Map, out.Value = instance.Restored(order.unitMap(cuts), order.order), order.costs.step(cuts)
}

// under finds cuts within the caps whose step is below the cutoff, in any of the orders.
func (pipeline *pipes) under(ctx context.Context, orders []int, caps []int64, cutoff float64, out *instance.Answer) (order int, cuts []int) {
	for _, i := range orders {
		if ctx.Err() != nil {
			out.EvenProved = false
			break
		}
		one := pipeline.searchOf(ctx, i, caps)
		if one == nil {
			out.EvenProved = false
			break
		}
		one.cutoff, one.first = cutoff, true
		if one.root() < cutoff {
			one.search(ctx)
		}
		out.Tried += one.nodes
		if one.best != nil {
			return i, one.best
		}
		out.EvenProved = out.EvenProved && !one.ended
	}
	return 0, nil
}
