package latency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
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
	if err := cmp.Or(problem.Acyclic(), graph.NewInstance(problem.Problem, problem.Groups()).Feasible()); err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	solver, err := newSolver(problem, set)
	if err != nil {
		return nil, err
	}
	solver.first(ctx)
	if err := solver.once(ctx); err != nil {
		return nil, err
	}
	part, cancel := partOf(ctx)
	solver.bounds(part)
	cancel()
	part, cancel = partOf(ctx)
	solver.starts(part)
	cancel()
	if solver.best == nil && math.IsInf(solver.bound, 1) {
		return nil, &graph.InfeasibleError{InOrder: problem.calls() == 1, Reason: "no calls take the units of a path within their capacity: " + solver.why}
	}
	if solver.best == nil {
		if err := solver.parts(ctx); err != nil {
			return nil, err
		}
	}
	solver.search(ctx)
	return solver.certify(ctx.Err() != nil)
}

type solver struct {
	problem *Problem
	// loose is for bounds, whole for lines; all are what is annealed.
	loose, whole *instance
	all          []*instance
	set          graph.Settings
	best         []int32 // calls of nodes
	value, bound float64
	method, why  string
	lock         sync.Mutex
}

// search tries all that there is where it is little, and anneals while time is
// left and a gap is.
func (solver *solver) search(ctx context.Context) {
	if !solver.proven() {
		solver.round(ctx, 0) // a good value before the search
		part, cancel := partOf(ctx)
		solver.exact(part)
		cancel()
	}
	_, limited := ctx.Deadline()
	for round, idle := 0, 0; ctx.Err() == nil && !solver.proven() && (limited || idle < idleRounds); round++ {
		before := solver.value
		solver.round(ctx, round)
		if solver.value < before {
			idle = 0
		} else {
			idle++
		}
	}
}

// idleRounds of annealing that find nothing better end the search where no time
// limit does.
const idleRounds = 8

func newSolver(problem *Problem, set graph.Settings) (*solver, error) {
	out := &solver{problem: problem, set: set, value: math.Inf(1)}
	join := problem.joins()
	var err error
	if out.loose, err = newInstance(problem, join.loose); err != nil {
		return nil, err
	}
	var fault error
	if out.whole, fault = newInstance(problem, join.circles); fault == nil {
		out.all = append(out.all, out.whole)
	}
	if join.several {
		groups, err := newInstance(problem, join.groups)
		if err != nil {
			return nil, err
		}
		out.all = append(out.all, groups)
		return out, nil
	}
	return out, fault
}

func (solver *solver) proven() bool { return solver.value*(1-4*graph.Rounding) <= solver.bound }

// take keeps an assignment where it is better.
func (solver *solver) take(call []int32, value float64, method string) {
	solver.lock.Lock()
	defer solver.lock.Unlock()
	if value < solver.value {
		solver.best, solver.value, solver.method = call, value, method
		solver.tell()
	}
}

func (solver *solver) tell() {
	if solver.set.Progress != nil {
		solver.set.Progress(solver.value, solver.bound)
	}
}

// bounds are those of paths; their intervals are assignments to start from.
func (solver *solver) bounds(ctx context.Context) {
	quickest := 0.0
	for _, node := range solver.loose.heaviest(solver.loose.soonest) {
		quickest += solver.loose.soonest(node)
	}
	solver.raise(quickest, "the longest path, each node where it is fastest")
	for _, weight := range weights {
		line := solver.loose.pathOf(func(node int32) float64 { return weight(solver.loose, node) })
		line.straddles = newStraddles(line)
		least, taken, done := line.cuts(ctx)
		if !done {
			return
		}
		solver.raise(least, fmt.Sprintf("a path of %d units, cut into %d calls", line.length, len(taken)))
	}
}

// raise takes a lower bound, which rounding may have lifted a little.
func (solver *solver) raise(bound float64, why string) {
	if bound *= 1 - graph.Rounding; bound > solver.bound || solver.why == "" {
		solver.bound, solver.why = bound, why
		solver.tell()
	}
}

// partOf ends after a third of the time that is left.
func partOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, limited := ctx.Deadline(); limited {
		return context.WithTimeout(ctx, time.Until(end)/3)
	}
	return context.WithCancel(ctx)
}

// first is an assignment that is there whatever the time.
func (solver *solver) first(ctx context.Context) {
	for _, in := range solver.all {
		state := newSearch(in, solver.set.Seed)
		order := make([]int32, len(in.nodes))
		for unit := range order {
			order[unit] = int32(unit)
		}
		if state.filled(order) {
			solver.take(state.calling(state.slot), state.eval.latency(state.slot), "filled in order")
			return
		}
		state.clear()
		if state.complete(ctx) {
			solver.take(state.calling(state.slot), state.eval.latency(state.slot), "one by one")
			return
		}
	}
}

// once starts from an answer with one call an accelerator, where several are
// allowed: it takes half of the time.
func (solver *solver) once(ctx context.Context) error {
	end, limited := ctx.Deadline()
	if solver.problem.calls() == 1 || !limited {
		return nil
	}
	found, err := Solve(ctx, &Problem{Problem: solver.problem.Problem}, graph.Settings{Seed: solver.set.Seed, TimeLimit: time.Until(end) / 2})
	if err != nil {
		var none *graph.InfeasibleError
		if !errors.As(err, &none) && ctx.Err() == nil {
			return err
		}
		return nil // there may be one with several calls
	}
	call := make([]int32, len(found.Call))
	for node, device := range found.Call {
		call[node] = OnCPU
		if device != OnCPU {
			call[node] = int32(slices.Index(solver.loose.device, device) * solver.loose.calls)
		}
	}
	solver.take(call, found.Value, found.Method)
	return nil
}

// parts starts from contiguous parts for the least largest load, where the
// capacities are so tight that nothing else was found. With one call an
// accelerator there are no assignments but such parts, and CPUs take what is
// between them.
func (solver *solver) parts(ctx context.Context) error {
	found, err := downset.Solve(ctx, solver.problem.Problem, graph.Settings{Seed: solver.set.Seed})
	if err != nil {
		var none *graph.InfeasibleError
		if errors.As(err, &none) && (solver.problem.cpu() >= 0 || solver.problem.calls() > 1) {
			none.Unproved = true
		}
		return err
	}
	call, slots := make([]int32, len(found.Place)), make(map[int]int32)
	for node, device := range found.Place {
		slot, known := slots[device]
		if !known {
			slot = solver.unused(solver.problem.KindOf(device), slots)
			slots[device] = slot
		}
		call[node] = slot
	}
	state := newSearch(solver.loose, solver.set.Seed)
	value := state.eval.latency(solver.loose.callOf(call))
	solver.take(call, value, "contiguous parts: "+found.Method)
	return nil
}

// unused is the first call of an accelerator of a kind that is in none of the
// slots; that of the CPUs for theirs.
func (solver *solver) unused(kind int, slots map[int]int32) int32 {
	taken := slices.Collect(maps.Values(slots))
	for device, own := range solver.loose.kinds {
		if slot := int32(device * solver.loose.calls); own == kind && !slices.Contains(taken, slot) {
			return slot
		}
	}
	return OnCPU
}

// starts are the assignments that the intervals of paths and of orders give.
func (solver *solver) starts(ctx context.Context) {
	if solver.whole == nil {
		return
	}
	state := newSearch(solver.whole, solver.set.Seed)
	var lines []*line
	for _, weight := range weights {
		line := solver.whole.pathOf(func(node int32) float64 { return weight(solver.whole, node) })
		line.straddles = newStraddles(line)
		lines = append(lines, line)
	}
	for _, order := range solver.whole.orders() {
		lines = append(lines, solver.whole.chainOf(order))
	}
	for i, line := range lines {
		method := "intervals of a path"
		if i >= len(weights) {
			method = "intervals of an order"
		}
		if _, taken, done := line.cuts(ctx); done && state.fromIntervals(ctx, line, taken) {
			solver.take(state.calling(state.slot), state.eval.latency(state.slot), method)
		}
	}
}

// weights of nodes, each of which makes a heaviest path.
var weights = []func(in *instance, node int32) float64{
	(*instance).soonest,
	func(in *instance, node int32) float64 { return in.problem.Nodes[node].Size },
	func(*instance, int32) float64 { return 1 },
	func(in *instance, node int32) float64 { return in.transfer[node] },
}

// round anneals from the best so far, on two threads.
func (solver *solver) round(ctx context.Context, round int) {
	var group sync.WaitGroup
	start := solver.best
	for thread := range min(2, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			in := solver.all[(round+thread)%len(solver.all)]
			state := newSearch(in, solver.set.Seed+uint64(2*round+thread)+1)
			hot := []float64{0.003, 0.03, 0.01, 0.1}[(round+thread)%4]
			state.anneal(ctx, in.callOf(start), 40_000<<min(round/2, 6), hot, func(slot []int32, value float64) { solver.take(in.calling(slot), value, "annealing") })
		})
	}
	group.Wait()
}

func (solver *solver) certify(stopped bool) (*Solution, error) {
	out := &Solution{Call: solver.loose.answer(solver.best), Method: solver.method}
	_, latency, err := solver.problem.Score(out.Call)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: solver.value, LowerBound: solver.bound, Bound: solver.why, Rounding: 4 * graph.Rounding, Stopped: stopped}
	out.Certificate, err = claim.Certify(latency)
	return out, err
}
