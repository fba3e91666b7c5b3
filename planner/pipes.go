package planner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// mostOrders is up to how many orders of unequal devices a pipeline tries.
const mostOrders = 720

// pipes solves pipelines: one stage a device by branch and bound for every
// order of the devices, several by a search for better cuts.
type pipes struct {
	p      *Problem
	orders []pipeOrder
	notes  []string
}

// pipeOrder is the problem with its devices in another order.
type pipeOrder struct {
	order []int
	p     *Problem
	l     *layout
	costs *pipeCosts
}

func newPiped(ctx context.Context, l *layout) (timed, error) {
	out := &pipes{p: l.p}
	n := len(l.device)
	own := make([]int, n)
	for d := range own {
		own[d] = d
	}
	all := [][]int{own}
	if !equal(l.p.Topology) {
		apart := map[int]bool{}
		for _, pin := range l.p.Pins {
			apart[pin.Device] = true
		}
		if all = orders(classes(l.p, apart), mostOrders); all == nil {
			all = [][]int{own}
			out.notes = append(out.notes, fmt.Sprintf("the %d devices can be ordered in more than %d ways: the stages keep the devices in order", n, mostOrders))
		}
	}
	var failed error
	for _, order := range all {
		if err := out.add(order); err != nil && failed == nil {
			failed = err // pins that this order cannot keep leave it out
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(out.orders) == 0 {
		return nil, failed
	}
	return out, nil
}

// add takes an order in.
func (s *pipes) add(order []int) error {
	q := s.p.permuted(order)
	l, fixed, err := q.layout()
	if err != nil {
		return err
	}
	s.orders = append(s.orders, pipeOrder{order, q, l, newPipeCosts(l, fixed)})
	return nil
}

// shortest implements timed.
func (s *pipes) shortest(ctx context.Context, caps []int64) (*answer, error) {
	if s.p.schedule().Chunks > 1 {
		return s.looped(ctx, caps)
	}
	items := len(s.orders[0].l.start) - 1
	if len(s.orders)*len(caps)*items*items > mostStretches {
		return &answer{notes: []string{"the pipeline has too many stretches for a search for its shortest step"}, bound: "none"}, errNone
	}
	out := &answer{bound: "search", notes: s.notes, lower: math.Inf(1)}
	searches := make([]*pipeSearch, len(s.orders))
	rank := make([]int, len(s.orders))
	for i := range s.orders {
		rank[i] = i
		searches[i] = s.searchOf(i, caps)
		out.lower = min(out.lower, searches[i].root()*(1-tolerance))
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(searches[a].root(), searches[b].root()) })
	best, cutoff := -1, math.Inf(1)
	complete := true
	for _, i := range rank {
		one := searches[i]
		if one.root() >= cutoff {
			break
		}
		one.cutoff = cutoff
		one.search(ctx)
		out.tried += one.nodes
		complete = complete && !one.ended
		if one.best != nil {
			one.climb(ctx, slices.Clone(one.best))
			best, cutoff = i, one.cutoff
		}
	}
	out.stopped = ctx.Err() != nil
	if best < 0 {
		out.proved = complete && len(s.notes) == 0
		return out, errNone
	}
	out.proved = complete && len(s.notes) == 0
	if len(s.notes) > 0 {
		out.lower, out.bound = s.anyOrder(), "fastest device"
	}
	if !out.proved && out.bound == "search" {
		out.bound = "busiest stage"
	}
	s.finish(ctx, out, searches[best], best, caps)
	if len(s.notes) > 0 {
		out.settle(ctx, s.p, caps)
	}
	return out, nil
}

func (s *pipes) searchOf(i int, caps []int64) *pipeSearch {
	o := &s.orders[i]
	own := make([]int64, len(caps))
	for d, old := range o.order {
		own[d] = caps[old]
	}
	return newPipeSearch(o.costs, o.p.schedule(), s.p.Costs.Workload.Mode == costmodel.Train, own)
}

// evenOrders is up to how many orders the largest share is made small for a
// step; above, it is made small for the order that was found.
const evenOrders = 120

// finish lowers the largest share while the step stays, and sets the map.
func (s *pipes) finish(ctx context.Context, out *answer, found *pipeSearch, at int, caps []int64) {
	cuts, cutoff := found.best, found.step(found.player, found.best)*(1+1e-12)
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
	out.m = restored(o.unitMap(cuts), o.order)
}

// under finds cuts within the caps whose step is below the cutoff, in any of
// the orders.
func (s *pipes) under(ctx context.Context, orders []int, caps []int64, cutoff float64, out *answer) (order int, cuts []int) {
	for _, i := range orders {
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

// anyOrder is a step that no map is below, whatever the order of devices: a
// micro-batch through all units, each on its fastest device, and all of the
// work over all devices.
func (s *pipes) anyOrder() float64 {
	c := s.orders[0].costs
	var sum, token float64
	for i := range len(c.forward[0]) - 1 {
		least, tok := math.Inf(1), math.Inf(1)
		for d := range c.forward {
			least = min(least, c.forward[d][i+1]-c.forward[d][i]+c.backward[d][i+1]-c.backward[d][i])
			tok = min(tok, c.token[d][i+1]-c.token[d][i])
		}
		sum, token = sum+least, token+tok
	}
	m := float64(s.p.schedule().MicroBatches)
	return (max(sum, sum*m/float64(len(c.forward))) + c.tokens*token) * (1 - tolerance)
}
