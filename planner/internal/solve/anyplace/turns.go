package anyplace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcut"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
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
	boundEffort = 800_000     // labels of one step
	fineEffort  = 5_000_000   // the same in the second half
	boundWork   = 150_000_000 // labels of a round's steps
)

// solve does what is cheap first, and ends where a bound meets an answer.
func (s *anywhere) solve(ctx context.Context) {
	prices, average := s.Average(s.EveryKind(), s.Size)
	s.Raise(average, graph.ByAverage)
	s.onePass(average)
	if s.Proven() {
		return
	}
	s.inOrder(ctx)
	s.unit(ctx)
	if s.tooLarge() {
		s.Answer.Method += "; tables for a search of any assignment would be too large"
		return
	}
	if !s.over(ctx) {
		s.exact(ctx, prices)
	}
	if !s.over(ctx) {
		s.search(ctx)
	}
}

// mostHeld bounds the table of what each device holds of each wire, of 4 bytes.
const mostHeld = 1 << 26

func (s *anywhere) tooLarge() bool { return len(s.Wires)*s.Problem.Devices() > mostHeld }

// inOrder takes the contiguous answer, for which it waits up to half of the
// time that is left: the search for any assignment goes on from there.
func (s *anywhere) inOrder(ctx context.Context) {
	part, cancel := startOf(ctx)
	defer cancel()
	sol, err := downset.Solve(part, s.Problem, graph.Settings{Seed: s.Settings.Seed})
	if err != nil {
		return
	}
	place := make([]int32, len(s.Nodes))
	for v, d := range sol.Place {
		place[s.ItemOf[v]] = int32(d)
	}
	s.take(place, sol.Value, sol.Method)
}

// unit finds the bound of the largest unit, in an eighth of the time that is
// left.
func (s *anywhere) unit(ctx context.Context) {
	part, cancel := partOf(ctx, 0.125)
	defer cancel()
	if ctx.Err() != nil || s.Proven() {
		return
	}
	unit, item := boundcut.Unit(part, s.Netlist)
	s.Raise(unit, fmt.Sprintf("largest unit: %s, with the transfers that it cannot avoid in any company", graph.Named(s.Names(item))))
}

// leastStart is what the contiguous answer is given however short the limit
// is, so that any assignment is not worse for having had less time for it.
const leastStart = 100 * time.Millisecond

// startOf ends after half of the time that is left, or leastStart.
func startOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, timed := ctx.Deadline()
	if half := time.Until(end) / 2; !timed || half > leastStart || errors.Is(ctx.Err(), context.Canceled) {
		return partOf(ctx, 0.5)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), leastStart)
}

// partOf ends after a part of the time that is left, where there is an end.
func partOf(ctx context.Context, part float64) (context.Context, context.CancelFunc) {
	if end, timed := ctx.Deadline(); timed {
		return context.WithTimeout(ctx, time.Duration(part*float64(time.Until(end))))
	}
	return context.WithCancel(ctx)
}

// over tells that there is nothing left to do, or no time.
func (s *anywhere) over(ctx context.Context) bool { return ctx.Err() != nil || s.Proven() }

// search takes turns: a bound that meets an answer saves the rest of the work,
// a better answer makes the bound's sets smaller.
func (s *anywhere) search(ctx context.Context) {
	split := newSplitter(ctx, s.Netlist, splitCells)
	if split == nil {
		return
	}
	rng := rand.New(rand.NewPCG(s.Settings.Seed, 0))
	a := newAnnealer(newPlacement(s.Netlist, s.scatter(rng)), rng)
	s.chain(ctx, a, split)
	_, timed := ctx.Deadline()
	for run := 0; run < annealRuns || timed && s.best == nil; run++ {
		if s.over(ctx) {
			return
		}
		a = newAnnealer(newPlacement(s.Netlist, s.scatter(rng)), rng)
		s.anneal(ctx, a, split, run)
	}
	if s.over(ctx) || s.best == nil {
		return
	}
	sets := boundprice.New(ctx, s.Netlist, boundEffort)
	for round := 0; round < kickRounds || timed; round++ {
		if !s.over(ctx) {
			s.kick(ctx, a, split)
		}
		if s.over(ctx) {
			return
		}
		if sets == nil {
			continue
		}
		if round == kickRounds/2 {
			sets.Refine(fineEffort)
		}
		sets.Improve(ctx, s.Answer.Value, sets.Steps(boundWork))
		s.Raise(sets.Bound, "sets: at some prices, all items are worth more than what all devices can take within this load")
	}
}
