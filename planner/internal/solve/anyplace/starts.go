package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
)

// anneal makes a run from the annealer's start. The power and the unit change
// from run to run: which suits a problem is not known before.
func (s *anywhere) anneal(ctx context.Context, a *annealer, split *splitter, run int) {
	a.squarings = 2 + run%3
	if a.unit = s.Answer.LowerBound * 1.05; a.unit <= 0 {
		a.unit = 1
	}
	if s.best != nil && run%2 == 1 {
		a.unit = s.Answer.Value
	}
	a.run(ctx, annealSteps*min(len(s.Nodes), mostItems), 3, 0.001)
	s.polish(ctx, a, split, "simulated annealing")
}

// polish splits pairs of the annealer's best answer anew, and takes it.
func (s *anywhere) polish(ctx context.Context, a *annealer, split *splitter, method string) {
	if a.found() {
		a.refresh(a.best)
	}
	split.polish(ctx, a)
	if a.found() {
		s.take(a.best, a.bestLoad, method+", and pairs of devices divided anew: any assignment is allowed, too many to try all")
	}
}

// chain starts from what contiguous parts can do.
func (s *anywhere) chain(ctx context.Context, a *annealer, split *splitter) {
	if s.best == nil {
		return
	}
	a.unit = s.Answer.Value
	a.refresh(s.best)
	a.note()
	s.polish(ctx, a, split, s.Answer.Method)
}

// kick shakes an answer a little, lets it settle, and goes on from there if it
// is nearly as good (iterated local search).
func (s *anywhere) kick(ctx context.Context, a *annealer, split *splitter) {
	at, load := append([]int32(nil), s.best...), s.Answer.Value
	stop, steps := split.work+kickWork, kickSteps*min(len(s.Nodes), mostItems)
	for range kicks {
		if s.over(ctx) || split.work > stop {
			return
		}
		a.unit = load
		a.squarings = 2 + a.rng.IntN(4)
		hot := [...]float64{0.02, 0.2}[a.rng.IntN(2)]
		copy(a.place, at)
		a.refresh(a.place)
		for range steps / 4 {
			a.step(hot)
		}
		a.forget()
		a.run(ctx, steps, hot, 0.001)
		s.polish(ctx, a, split, "iterated local search")
		if a.found() && a.bestLoad <= load*(1+0.002*a.rng.Float64()) {
			load = a.bestLoad
			copy(at, a.best)
		}
	}
}

// scatter puts each item on a random device of the kind that is best for it.
func (s *anywhere) scatter(rng *rand.Rand) []int32 {
	place := make([]int32, len(s.Nodes))
	for v := range place {
		kind := -1
		for k, n := range s.Count {
			if n > 0 && s.Size[v] <= s.Capacity[k] && (kind < 0 || s.Time[k][v] < s.Time[kind][v]) {
				kind = k
			}
		}
		place[v] = int32(s.First[kind] + rng.IntN(s.Count[kind]))
	}
	return place
}

// onePass goes through the items once, so that there is an answer however soon
// the end comes: an item joins the one before unless that device then has more
// than the average, or cannot take it; then it goes where the least is.
func (s *anywhere) onePass(average float64) {
	kind := s.KindOf()
	load, bytes := make([]float64, len(kind)), make([]float64, len(kind))
	place := make([]int32, len(s.Nodes))
	at := 0
	for v := range place {
		can := func(d int) bool {
			return !math.IsInf(s.Time[kind[d]][v], 1) && bytes[d]+s.Size[v] <= s.Capacity[kind[d]]
		}
		if !can(at) || load[at]+s.Time[kind[at]][v] > average {
			least := -1
			for d := range kind {
				if can(d) && (least < 0 || load[d]+s.Time[kind[d]][v] < load[least]+s.Time[kind[least]][v]) {
					least = d
				}
			}
			if least < 0 {
				return
			}
			at = least
		}
		place[v] = int32(at)
		load[at] += s.Time[kind[at]][v]
		bytes[at] += s.Size[v]
	}
	s.take(place, 0, "one pass: each item where the one before is, or where the least is")
}
