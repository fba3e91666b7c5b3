package anyplace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcut"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// The work: runs of annealing from random starts, then rounds of kicks to the
// best answer and steps of the bound.
const (
	annealRuns  = 8
	annealSteps = 4000 // for each item
	kickRounds  = 48
	kicks       = 4           // in a round
	kickSteps   = 400         // for each item
	kickWork    = 125_000_000 // of the splits in a round
	maxItems    = 250         // that steps are made for
	splitCells  = 400
	boundWork   = 100_000_000 // of the bound in a round
)

// solve does what is cheap first, and ends where a bound meets an answer.
func (call *anywhere) solve(ctx context.Context) {
	prices, average := call.Average(call.EveryKind(), call.Size)
	call.Raise(average, graph.ByAverage)
	call.onePass(average)
	if call.Proven() {
		return
	}
	part, cancel := startOf(ctx, firstPart)
	whole := call.inOrder(part)
	cancel()
	call.unit(ctx)
	if call.tooLarge() {
		call.goOn(ctx, whole)
		call.Answer.Method += "; tables for a search of any assignment would be too large"
		return
	}
	if whole {
		call.row = nil // nothing is left to be found
	}
	call.together(ctx, prices)
}

// together searches and bounds at the same time.
func (call *anywhere) together(ctx context.Context, prices graph.Prices) {
	side := call.newBeside()
	defer side.close()
	if _, timed := ctx.Deadline(); timed {
		call.steps = annealSteps * maxItems
	}
	if !call.over(ctx) {
		call.exact(ctx, prices)
	}
	if !call.over(ctx) {
		call.search(ctx, side)
	}
}

// maxHeld bounds the table of what each device holds of each wire, of 4 bytes.
const maxHeld = 1 << 26

func (call *anywhere) tooLarge() bool { return len(call.Wires)*call.Problem.Devices() > maxHeld }

// inOrder takes the contiguous answer: the search for any assignment goes on from
// there. It tells whether that is all that there is to be had.
func (call *anywhere) inOrder(ctx context.Context) (whole bool) {
	began := time.Now()
	sol, err := downset.Solve(ctx, call.Problem, graph.Settings{Seed: call.Settings.Seed})
	if err != nil {
		return ctx.Err() == nil
	}
	if call.row == nil || sol.Value < call.rowValue {
		call.row, call.rowValue = sol.Place, sol.Value
	}
	call.rowBound, call.whole = max(call.rowBound, sol.LowerBound), time.Since(began)
	call.takeRow(sol.Place, sol.Value, sol.Method)
	return ctx.Err() == nil
}

// goOn goes on with the contiguous answer, unless that is whole, for up to half of
// the time that is left.
func (call *anywhere) goOn(ctx context.Context, whole bool) {
	if !whole && ctx.Err() == nil {
		part, cancel := partOf(ctx, 0.5)
		defer cancel()
		call.inOrder(part)
	}
}

// unit finds the bound of the largest unit, in an eighth of the time that is
// left.
func (call *anywhere) unit(ctx context.Context) {
	part, cancel := partOf(ctx, 0.125)
	defer cancel()
	if ctx.Err() != nil || call.Proven() {
		return
	}
	unit, item := boundcut.Unit(part, call.Netlist)
	call.Raise(unit, fmt.Sprintf("largest unit: %s, with the transfers that it cannot avoid in any company", graph.Named(call.Names(item))))
}

// minStart is what the contiguous answer is given however short the limit
// is, so that any assignment is not worse for having had less time for it.
const minStart = 100 * time.Millisecond

// firstPart of the time is what the contiguous answer is given before the bound
// begins, which wants to know how high it may have to come.
const firstPart = 0.05

// startOf ends after a part of the time that is left, or minStart.
func startOf(ctx context.Context, part float64) (context.Context, context.CancelFunc) {
	end, timed := ctx.Deadline()
	if left := time.Duration(part * float64(time.Until(end))); !timed || left > minStart || errors.Is(ctx.Err(), context.Canceled) {
		return partOf(ctx, part)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), minStart)
}

// partOf ends after a part of the time that is left, where there is an end.
func partOf(ctx context.Context, part float64) (context.Context, context.CancelFunc) {
	if end, timed := ctx.Deadline(); timed {
		return context.WithTimeout(ctx, time.Duration(part*float64(time.Until(end))))
	}
	return context.WithCancel(ctx)
}

// over tells that there is nothing left to do, or no time.
func (call *anywhere) over(ctx context.Context) bool { return ctx.Err() != nil || call.Proven() }

// search takes turns in rounds, on two processors: one searches for answers,
// the other raises the bound for as long as prices can, and then searches too.
// Both begin with the best that is known and hand in what they found at the end.
// Without a deadline they wait for each other after every round, so that the
// answer is the same in every run.
func (call *anywhere) search(ctx context.Context, side *beside) {
	split := newSplitter(ctx, call.Netlist, splitCells)
	if split == nil {
		return
	}
	find := call.newFinder(split, 0)
	side.find = call.newFinder(split.twin(), 1)
	side.find.first = 0
	side.find.ways.turn()
	call.follow(ctx, find)
	_, timed := ctx.Deadline()
	for round := 0; round < annealRuns+kickRounds || timed; round++ {
		if call.over(ctx) {
			break
		}
		if side.done == nil {
			side.begin(ctx, timed)
		}
		if timed {
			call.inRow(side.part, find)
		}
		began := time.Now()
		find.know(call.best, call.Answer.Value, call.Answer.LowerBound)
		find.round(side.part)
		call.take(find.at, find.value, find.method)
		call.spent += time.Since(began)
		side.end(!timed)
	}
}

// follow starts the search from the best answer.
func (call *anywhere) follow(ctx context.Context, find *finder) {
	if call.best != nil {
		find.know(call.best, call.Answer.Value, call.Answer.LowerBound)
		find.from(ctx, call.best, call.Answer.Method)
		call.take(find.at, find.value, find.method)
	}
}
