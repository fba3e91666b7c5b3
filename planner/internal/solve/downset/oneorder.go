package downset

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
)

// manyItems is from how many items on an order is cut greedily before it is
// cut exactly, which takes a table of items × devices and may not end in time.
const manyItems = 4000

// oneOrder finds the best cuts of one linear extension, and some cuts at
// least, whatever the end of the context or the memory set aside leave of the
// search for the best.
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
		return nil // the next order may do with less, and greedy cuts need none
	}
	return err
}

// greedily cuts an order without a table. The first cuts do not wait for
// anything: they are the answer where the time is over.
func (call *contiguous) greedily(ctx context.Context, items []int) {
	const found = "linear extension: greedy cuts of one order of the nodes"
	cuts := newGreedy(call.order, items)
	if always := context.WithoutCancel(ctx); call.Answer.Place == nil {
		for above := 0.001; call.Answer.Place == nil && above < 1000; above *= 2 {
			call.takeCuts(cuts.cut(always, call.Answer.LowerBound*(1+above), false), found)
		}
		for _, summed := range []bool{false, true} { // one by one where sums of prefixes round
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

// greedyGap is how near two limits are that greedy cuts tell apart.
const greedyGap = 1e-4

func (call *contiguous) takeCuts(place []int, method string) {
	if place != nil {
		call.Take(place, method)
	}
}

// improve is a local search: it cuts other orders, near the best answer's own, for as
// long as there is time. Without an end to wait for it does nothing, and neither where
// one order is all there is.
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

// shuffled is a linear extension that runs through the best answer's parts one
// after the other, so that its cuts are among those of the extension, and is
// random inside each: more or less, from one time to the next.
func (call *contiguous) shuffled(ctx context.Context, rng *rand.Rand) []int {
	rank := call.ranks()
	deep := [...]float64{0, 0.5, 0.9}[rng.IntN(3)] // the chance to go on with the last that came free
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

// ranks are the places of the items' devices along the best answer's chain; all
// 0 where there is no answer. Parts are differences of down-sets, so that
// devices can be put in order as items are.
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
