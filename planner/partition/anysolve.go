package partition

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// The work: runs of annealing from random starts, then rounds of kicks to the
// best answer and steps of the bound.
const (
	annealRuns  = 8
	annealSteps = 4000 // for each item
	kickRounds  = 12
	kicks       = 16          // in a round
	kickSteps   = 400         // for each item
	kickWork    = 500_000_000 // of the splits in a round
	mostItems   = 250         // that steps are made for
	splitCells  = 400
	chainSets   = 2000        // down-sets of the contiguous start
	boundEffort = 800_000     // labels of one step
	fineEffort  = 5_000_000   // the same in the second half
	boundWork   = 150_000_000 // labels of a round's steps
)

// solve does what is cheap first, and ends where a bound meets an answer.
func (s *anywhere) solve(ctx context.Context) {
	prices, average := s.average(s.everyKind(), s.size)
	s.raise(average, byAverage)
	s.onePass(average)
	unit, item := s.unitBound(ctx)
	s.raise(unit, fmt.Sprintf("largest unit: %s, with the transfers that it cannot avoid in any company", named(s.names(item))))
	if !s.over(ctx) {
		s.exact(ctx, prices)
	}
	if !s.over(ctx) {
		s.search(ctx)
	}
}

// over tells that there is nothing left to do, or no time.
func (s *anywhere) over(ctx context.Context) bool { return ctx.Err() != nil || s.proven() }

// search takes turns: a bound that meets an answer saves the rest of the work,
// a better answer makes the bound's sets smaller.
func (s *anywhere) search(ctx context.Context) {
	split := newSplitter(ctx, s.netlist, splitCells)
	if split == nil {
		return
	}
	rng := rand.New(rand.NewPCG(s.set.Seed, 0))
	a := newAnnealer(newPlacement(s.netlist, s.scatter(rng)), rng)
	s.chain(ctx, a, split)
	for run := range annealRuns {
		if s.over(ctx) {
			return
		}
		a = newAnnealer(newPlacement(s.netlist, s.scatter(rng)), rng)
		s.anneal(ctx, a, split, run)
	}
	if s.over(ctx) || s.best == nil {
		return
	}
	sets := s.newSetBound(ctx, boundEffort)
	for round := range kickRounds {
		if !s.over(ctx) {
			s.kick(ctx, a, split)
		}
		if s.over(ctx) || sets == nil {
			return
		}
		if round == kickRounds/2 {
			sets.refine(fineEffort)
		}
		sets.improve(ctx, s.sol.Largest, sets.steps(boundWork))
		s.raise(sets.bound, "sets: at some prices, all items are worth more than what all devices can take within this load")
	}
}
