package latency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Solve places the nodes so that the latency is least: first the best
// intervals of paths and orders, then by annealing, on as many threads as Go
// has, up to two, while time is left and a gap is. What is proved is the
// bound of paths.
//
// Errors: a *graph.CycleError, a *graph.InfeasibleError, the faults that
// Problem.Check reports, and the context's where it ends before anything is
// found.
func Solve(ctx context.Context, problem *Problem, set graph.Settings) (*Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	in, err := newInstance(problem)
	if err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	solver := &solver{instance: in, set: set, value: math.Inf(1)}
	solver.starts(ctx)
	if solver.best == nil {
		return nil, cmpErr(ctx.Err(), &graph.InfeasibleError{Unproved: true, Reason: "no assignment was found that keeps the capacities"})
	}
	for round := 0; ctx.Err() == nil && !solver.proven() && round < rounds; round++ {
		solver.round(ctx, round)
	}
	return solver.certify(ctx.Err() != nil)
}

func cmpErr(first, second error) error {
	if first != nil {
		return errors.Join(first, second)
	}
	return second
}

const rounds = 40

type solver struct {
	*instance

	set          graph.Settings
	best         []int32
	value, bound float64
	method, why  string
	lock         sync.Mutex
}

func (solver *solver) proven() bool { return solver.value*(1-4*graph.Rounding) <= solver.bound }

// take keeps an assignment where it is better.
func (solver *solver) take(slot []int32, value float64, method string) {
	solver.lock.Lock()
	defer solver.lock.Unlock()
	if value < solver.value {
		solver.best, solver.value, solver.method = slot, value, method
		solver.tell()
	}
}

func (solver *solver) tell() {
	if solver.set.Progress != nil {
		solver.set.Progress(solver.value, solver.bound)
	}
}

// starts are the bound of paths and the assignments that their intervals, and
// those of orders, give.
func (solver *solver) starts(ctx context.Context) {
	state := newSearch(solver.instance, solver.set.Seed)
	offer := func(line *line, taken []interval, method string) {
		if state.fromIntervals(line, taken) {
			solver.take(slices.Clone(state.slot), state.eval.latency(state.slot), method)
		}
	}
	paths := []func(int32) float64{
		solver.soonest,
		func(node int32) float64 { return solver.problem.Nodes[node].Size },
		func(int32) float64 { return 1 },
		func(node int32) float64 { return solver.transfer[node] },
	}
	for _, weight := range paths {
		line := solver.pathOf(weight)
		least, taken, done := line.cuts(ctx)
		if !done {
			break
		}
		if least *= 1 - graph.Rounding; least > solver.bound {
			solver.bound, solver.why = least, fmt.Sprintf("a path of %d units, cut into %d calls", line.length, len(taken))
			solver.tell()
		}
		offer(line, taken, "intervals of a path")
	}
	for _, order := range solver.orders() {
		line := solver.chainOf(order)
		if _, taken, done := line.cuts(ctx); done {
			offer(line, taken, "intervals of an order")
		}
	}
}

// round anneals from the best so far, on two threads.
func (solver *solver) round(ctx context.Context, round int) {
	var group sync.WaitGroup
	start := solver.best
	for thread := range min(2, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			state := newSearch(solver.instance, solver.set.Seed+uint64(2*round+thread)+1)
			hot := []float64{0.003, 0.03, 0.01, 0.1}[(round+thread)%4]
			state.anneal(ctx, start, 40_000<<min(round/2, 6), hot, func(slot []int32, value float64) { solver.take(slot, value, "annealing") })
		})
	}
	group.Wait()
}

func (solver *solver) certify(stopped bool) (*Solution, error) {
	out := &Solution{Call: solver.place(solver.best), Method: solver.method}
	_, latency, err := solver.problem.Score(out.Call)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: solver.value, LowerBound: solver.bound, Bound: solver.why, Rounding: 4 * graph.Rounding, Stopped: stopped}
	out.Certificate, err = claim.Certify(latency)
	return out, err
}
