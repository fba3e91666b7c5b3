package downset

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
)

// manyItems is the number of items above which an order is first cut greedily. The exact cut takes
// a table of items × devices and may not end in time.
const manyItems = 4000

// oneOrder finds the best cuts of one linear extension. If time or memory is short, it still finds
// some cuts.
func (call *contiguous) oneOrder(ctx context.Context, items []int) error {
	if len(items) > manyItems {
		call.greedily(ctx, items)
		if call.Proven() {
			return nil
		}
	}
	err := call.through(ctx, chainLattice(items), false, "linear extension: the best cuts of one order of the nodes")
	if call.Answer.Place == nil && err != nil {
		call.greedily(ctx, items)
	}
	if errors.Is(err, errFull) {
		call.full = true
		return nil // the next order may need less, and greedy cuts need none
	}
	return err
}

// greedily cuts an order without a table. The first cuts ignore the context, so that there is an
// answer when the time is over.
func (call *contiguous) greedily(ctx context.Context, items []int) {
	const found = "linear extension: greedy cuts of one order of the nodes"
	cuts := newGreedy(call.order, items)
	if always := context.WithoutCancel(ctx); call.Answer.Place == nil {
		for above := 0.001; call.Answer.Place == nil && above < 1000; above *= 2 {
			call.takeCuts(cuts.cut(always, call.Answer.LowerBound*(1+above), false), found)
		}
		for _, summed := range []bool{false, true} { // item by item if prefix sums round
			if call.Answer.Place == nil {
				call.takeCuts(cuts.cut(always, math.Inf(1), summed), found)
			}
		}
	}
	low := call.Answer.LowerBound
	for high := call.Answer.Value; call.Answer.Place != nil && high-low > greedyGap*high && ctx.Err() == nil; {
		limit := low + (high-low)/2
		if place := cuts.cut(ctx, limit, true); place != nil {
			call.takeCuts(place, found)
			high = min(limit, call.Answer.Value)
		} else {
			low = limit
		}
	}
}

// greedyGap is the relative difference at which the bisection of greedy cuts ends.
const greedyGap = 1e-4

func (call *contiguous) takeCuts(place []int, method string) {
	if place != nil {
		call.Take(place, method)
	}
}

// improve is a local search: it cuts other orders, near the best answer's own, until the time ends.
// It does nothing without a deadline, or if there is only one order.
func (call *contiguous) improve(ctx context.Context) error {
	if _, timed := ctx.Deadline(); !timed || call.single {
		return nil
	}
	rng := rand.New(rand.NewPCG(0, 1))
	for ctx.Err() == nil && !call.Proven() {
		items := call.shuffled(ctx, rng)
		if items == nil {
			break
		}
		call.greedily(ctx, items)
		if call.full || call.Proven() {
			continue
		}
		if err := call.through(ctx, chainLattice(items), false, "linear extension: the best cuts of one of many orders of the nodes"); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// shuffled returns a random linear extension that contains the best answer's cuts: it runs through
// the answer's parts one after the other, in random order inside each. The degree of randomness
// varies.
func (call *contiguous) shuffled(ctx context.Context, rng *rand.Rand) []int {
	rank := call.ranks()
	deep := [...]float64{0, 0.5, 0.9}[rng.IntN(3)] // probability of continuing with the item that became free last
	return call.extend(call.before, call.after, func(free []int) int {
		if ctx.Err() != nil {
			return -1
		}
		least, pick, ties := math.MaxInt, 0, 0
		last := rng.Float64() < deep
		for i, item := range free {
			switch r := rank[item]; {
			case r < least:
				least, pick, ties = r, i, 1
			case r == least:
				ties++
				if last || rng.IntN(ties) == 0 {
					pick = i
				}
			default:
			}
		}
		return pick
	})
}

// ranks returns the places of the items' devices along the best answer's chain; all 0 if there is
// no answer. Parts are differences of down-sets, so devices can be ordered as items are.
func (call *contiguous) ranks() []int {
	rank := make([]int, len(call.Nodes))
	if call.Answer.Place == nil {
		return rank
	}
	before, after := make([][]int, call.Problem.Devices()), make([][]int, call.Problem.Devices())
	device := func(item int) int { return call.Answer.Place[call.Nodes[item][0]] }
	for item := range call.Nodes {
		for _, other := range call.before[item] {
			if from, to := device(other), device(item); from != to {
				before[to], after[from] = append(before[to], from), append(after[from], to)
			}
		}
	}
	place := make([]int, len(before))
	for i, d := range call.extend(before, after, func(free []int) int { return len(free) - 1 }) {
		place[d] = i
	}
	for item := range rank {
		rank[item] = place[device(item)]
	}
	return rank
}
