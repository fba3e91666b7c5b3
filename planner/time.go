package planner

import (
	"context"
	"errors"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// time finds the shortest step among maps that fit. The memory answer shows whether one fits. It is
// also the answer if the time ends before another is found.
func (solver *solveCall) time(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if in.AnyAssignment && !in.Replicated() {
		return solver.timeUnconstrained(ctx, in)
	}
	first := *solver
	first.limits.AnyFit = true
	memory, failed := first.memory(ctx, in.For(instance.Memory))
	var large *InfeasibleError
	switch {
	case failed == nil:
	case !errors.As(failed, &large):
		return nil, failed
	case in.Replicated():
		return memory, failed
	case in.Uniform() && (!in.Piped() || !in.Ordered()): // no other order of the devices fits
		return nil, failed
	}
	return solver.shorter(ctx, in, memory, failed)
}

// shorter returns the map with the shortest step that the method finds. If it finds none, or one
// with a longer step, it returns the memory answer.
func (solver *solveCall) shorter(ctx context.Context, in *instance.Instance, memory *Solution, failed error) (*Solution, error) {
	method, err := methodFor(in)
	if err != nil {
		return nil, err
	}
	answer, err := method.Solve(ctx, in, solver.limits, nil)
	none := errors.Is(err, instance.ErrNone)
	switch {
	case err != nil && !none:
		return nil, err
	case failed == nil && (none || !answer.Proved && stepOf(in, memory.Map) < stepOf(in, answer.Map)):
		return fallback(in, memory, answer, method) // a stopped search may miss maps
	case none:
		return memory, failed
	}
	return certify(in, answer, method)
}

// stepOf returns the seconds of a map's step, from package devicemap.
func stepOf(in *instance.Instance, placed devicemap.Map) float64 {
	return *devicemap.StepSeconds(in.Timed(), in.Topology, placed)
}

// fallback returns the memory answer, which certify has checked, if the search for a short step
// found no map. If that answer lacks links, every map does.
func fallback(in *instance.Instance, memory *Solution, found *instance.Answer, method instance.Method) (*Solution, error) {
	if err := in.Linked(memory.Map); err != nil {
		return nil, err
	}
	return solutionOf(in, in.Timed(), &instance.Answer{
		Map: memory.Map, Notes: found.Notes, Tried: found.Tried, Uneven: instance.StepUneven,
		Claim: certificate.Claim{Value: math.NaN(), LowerBound: found.LowerBound, Bound: found.Bound, Rounding: certificate.Sums, Stopped: true},
	}, method, memory.Devices)
}

// timeUnconstrained finds a short step of a device map with units on any device. It starts from the
// contiguous answer, or, if pins allow none, from a map that fits.
func (solver *solveCall) timeUnconstrained(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if _, err := in.Sets(); err != nil {
		return nil, err
	}
	first, err := solver.timeInOrder(ctx, in)
	if err != nil {
		return nil, err
	}
	method, err := methodFor(in)
	if err != nil {
		return nil, err
	}
	start := &instance.Answer{Claim: certificate.Claim{Value: math.NaN()}}
	switch {
	case first != nil && chaintime.Fewer(in) < len(in.Topology.Devices):
		first.Warnings = append(first.Warnings, costmodel.Messagef("any assignment was not searched: the units and devices are too many for its tables"))
		first.Method = method.Why(in)
		return first, nil // the bound has each unit on its fastest device and holds for any map
	case first != nil:
		start.Map, start.Value = first.Map, first.Value
	default:
		half, cancel := instance.HalfOf(ctx)
		memory, err := solver.memory(half, in.For(instance.Memory))
		cancel()
		if err != nil {
			return memory, err
		}
		start.Map = memory.Map
	}
	answer, err := method.Solve(ctx, in, solver.limits, start)
	if err != nil {
		return nil, err
	}
	return certify(in, answer, method)
}

// timeInOrder returns the shortest step found for a contiguous map, in half of the time; nil if
// there is none.
func (solver *solveCall) timeInOrder(ctx context.Context, in *instance.Instance) (*Solution, error) {
	ctx, cancel := instance.HalfOf(ctx)
	defer cancel()
	sol, err := solver.time(ctx, in.InOrder())
	var (
		link  *instance.LinkError
		large *InfeasibleError
	)
	if instance.Contradicts(err) || errors.As(err, &link) || errors.As(err, &large) {
		return nil, nil //nolint:nilnil // no such map, and no fault of ours
	}
	return sol, err
}
