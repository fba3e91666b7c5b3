package partition

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// The work: runs of annealing from random starts, then kicks of the best
// answer, with steps of the bound in between.
const (
	annealRuns  = 8
	annealSteps = 1_000_000
	kickRounds  = 12
	kicks       = 16 // in a round
	kickSteps   = 40_000
	splitCells  = 400
	boundEffort = 2_000_000   // labels of one step
	boundWork   = 150_000_000 // labels of a round's steps
)

// solve takes turns: a bound that meets an answer saves the rest of the
// search, a better answer makes the bound's sets smaller.
func (s *anywhere) solve(ctx context.Context) {
	use := make([]bool, len(s.p.Kinds))
	for k := range use {
		use[k] = true
	}
	prices, average := s.average(use)
	s.raise(average, "average: all times over all devices")
	unit, item := s.unitBound(ctx)
	s.raise(unit, fmt.Sprintf("largest unit: %s, with the transfers that it cannot avoid in any company", named(s.names(item))))

	s.exact(ctx, prices)
	if ctx.Err() != nil || s.proven() {
		return
	}
	split := newSplitter(s.netlist, splitCells)
	rng := rand.New(rand.NewPCG(s.set.Seed, 0))
	var a *annealer
	for run := range annealRuns {
		a = newAnnealer(newPlacement(s.netlist, s.scatter(rng)), rng)
		s.anneal(ctx, a, split, run)
		if ctx.Err() != nil || s.proven() {
			return
		}
	}
	s.chain(ctx, a, split)
	sets := s.newSetBound(ctx, boundEffort)
	for range kickRounds {
		if ctx.Err() == nil && !s.proven() && s.best != nil {
			s.kick(ctx, a, split)
		}
		if ctx.Err() != nil || s.proven() {
			return
		}
		if sets == nil {
			continue
		}
		sets.improve(ctx, s.sol.Largest, sets.steps(boundWork))
		s.raise(sets.bound, "sets: at some prices, all items are worth more than what all devices can take within this load")
	}
}

func (s *anywhere) names(item int) []string {
	var names []string
	for _, v := range s.nodes[item] {
		names = append(names, s.p.Nodes[v].Name)
	}
	return names
}

// anneal makes a run from the annealer's start. The power and the unit change
// from run to run: which suits a problem is not known before.
func (s *anywhere) anneal(ctx context.Context, a *annealer, split *splitter, run int) {
	a.squarings = 2 + run%3
	a.unit = s.sol.LowerBound * 1.05
	if s.best != nil && run%2 == 1 {
		a.unit = s.sol.Largest
	}
	a.run(ctx, annealSteps, 3, 0.001)
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
	sol, err := Contiguous(ctx, s.p, Settings{TimeLimit: time.Second})
	if err != nil {
		return
	}
	for v, d := range sol.Place {
		a.place[s.itemOf[v]] = int32(d)
	}
	a.forget()
	a.unit = sol.Largest
	a.refresh(a.place)
	a.note()
	s.take(a.best, a.bestLoad, sol.Method)
	s.polish(ctx, a, split, sol.Method)
}

// kick shakes an answer a little, lets it settle, and goes on from there if it
// is nearly as good (iterated local search).
func (s *anywhere) kick(ctx context.Context, a *annealer, split *splitter) {
	at, load := append([]int32(nil), s.best...), s.sol.Largest
	for range kicks {
		if ctx.Err() != nil || s.proven() {
			return
		}
		a.unit = load
		a.squarings = 2 + a.rng.IntN(4)
		hot := [...]float64{0.02, 0.2}[a.rng.IntN(2)]
		copy(a.place, at)
		a.refresh(a.place)
		for range kickSteps / 4 {
			a.step(hot)
		}
		a.forget()
		a.run(ctx, kickSteps, hot, 0.001)
		s.polish(ctx, a, split, "iterated local search")
		if a.found() && a.bestLoad <= load*(1+0.002*a.rng.Float64()) {
			load = a.bestLoad
			copy(at, a.best)
		}
	}
}

// scatter puts each item on a random device of the kind that is best for it.
func (s *anywhere) scatter(rng *rand.Rand) []int32 {
	place := make([]int32, len(s.nodes))
	for v := range place {
		kind := -1
		for k, n := range s.count {
			if n > 0 && s.size[v] <= s.capacity[k] && (kind < 0 || s.time[k][v] < s.time[kind][v]) {
				kind = k
			}
		}
		place[v] = int32(s.first[kind] + rng.IntN(s.count[kind]))
	}
	return place
}
