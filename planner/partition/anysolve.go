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
	use := make([]bool, len(s.p.Kinds))
	for k := range use {
		use[k] = true
	}
	prices, average := s.average(use)
	s.raise(average, "average: all times over all devices")
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
	split := newSplitter(s.netlist, splitCells)
	rng := rand.New(rand.NewPCG(s.set.Seed, 0))
	var a *annealer
	for run := range annealRuns {
		a = newAnnealer(newPlacement(s.netlist, s.scatter(rng)), rng)
		s.anneal(ctx, a, split, run)
		if s.over(ctx) {
			return
		}
	}
	s.chain(ctx, a, split)
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

func (s *anywhere) names(item int) []string {
	var names []string
	for _, v := range s.nodes[item] {
		names = append(names, s.p.Nodes[v].Name)
	}
	return names
}
