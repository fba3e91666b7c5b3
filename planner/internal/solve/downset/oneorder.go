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
func (s *contiguous) oneOrder(ctx context.Context, items []int) error {
	if len(items) > manyItems {
		s.greedily(ctx, items)
		if s.Proven() {
			return nil
		}
	}
	err := s.through(ctx, chainLattice(items), false, "linear extension: the best cuts of one order of the nodes")
	if s.Answer.Place == nil && err != nil {
		s.greedily(ctx, items)
	}
	if errors.Is(err, errFull) {
		s.full = true
		return nil // the next order may do with less, and greedy cuts need none
	}
	return err
}

// greedily cuts an order without a table. The first cuts do not wait for
// anything: they are the answer where the time is over.
func (s *contiguous) greedily(ctx context.Context, items []int) {
	const found = "linear extension: greedy cuts of one order of the nodes"
	g := newGreedy(s.order, items)
	if always := context.WithoutCancel(ctx); s.Answer.Place == nil {
		for above := 0.001; s.Answer.Place == nil && above < 1000; above *= 2 {
			s.takeCuts(g.cut(always, s.Answer.LowerBound*(1+above), false), found)
		}
		for _, summed := range []bool{false, true} { // one by one where sums of prefixes round
			if s.Answer.Place == nil {
				s.takeCuts(g.cut(always, math.Inf(1), summed), found)
			}
		}
	}
	low := s.Answer.LowerBound
	for high := s.Answer.Value; s.Answer.Place != nil && high-low > greedyGap*high && ctx.Err() == nil; {
		limit := low + (high-low)/2
		if place := g.cut(ctx, limit, true); place != nil {
			s.takeCuts(place, found)
			high = min(limit, s.Answer.Value)
		} else {
			low = limit
		}
	}
}

// greedyGap is how near two limits are that greedy cuts tell apart.
const greedyGap = 1e-4

func (s *contiguous) takeCuts(place []int, method string) {
	if place != nil {
		s.Take(place, method)
	}
}

// more cuts other orders, near the best answer's own, for as long as there is
// time. Without an end to wait for it does nothing, and neither where one
// order is all there is.
func (s *contiguous) more(ctx context.Context) error {
	if _, timed := ctx.Deadline(); !timed || s.single {
		return nil
	}
	rng := rand.New(rand.NewPCG(s.Settings.Seed, 1))
	for ctx.Err() == nil && !s.Proven() {
		items := s.shuffled(ctx, rng)
		if items == nil {
			break
		}
		s.greedily(ctx, items)
		if s.full || s.Proven() {
			continue
		}
		if err := s.through(ctx, chainLattice(items), false, "linear extension: the best cuts of one of many orders of the nodes"); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// shuffled is a linear extension that runs through the best answer's parts one
// after the other, so that its cuts are among those of the extension, and is
// random inside each: more or less, from one time to the next.
func (s *contiguous) shuffled(ctx context.Context, rng *rand.Rand) []int {
	rank := s.ranks()
	deep := [...]float64{0, 0.5, 0.9}[rng.IntN(3)] // the chance to go on with the last that came free
	return s.extend(s.before, s.after, func(free []int) int {
		if ctx.Err() != nil {
			return -1
		}
		least, pick, ties := math.MaxInt, 0, 0
		last := rng.Float64() < deep
		for i, v := range free {
			switch r := rank[v]; {
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
func (s *contiguous) ranks() []int {
	rank := make([]int, len(s.Nodes))
	if s.Answer.Place == nil {
		return rank
	}
	before, after := make([][]int, s.Problem.Devices()), make([][]int, s.Problem.Devices())
	device := func(item int) int { return s.Answer.Place[s.Nodes[item][0]] }
	for v := range s.Nodes {
		for _, u := range s.before[v] {
			if from, to := device(u), device(v); from != to {
				before[to], after[from] = append(before[to], from), append(after[from], to)
			}
		}
	}
	place := make([]int, len(before))
	for i, d := range s.extend(before, after, func(free []int) int { return len(free) - 1 }) {
		place[d] = i
	}
	for v := range rank {
		rank[v] = place[device(v)]
	}
	return rank
}
