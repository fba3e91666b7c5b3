package planner

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// relaxed is the problem where every device is as large as the largest, and
// its step is a bound on that of every order of the devices. Nil where the
// devices differ in more than what they hold.
func (p *Problem) relaxed() *Problem {
	q, table := *p, *p.Costs
	best := p.Topology.Devices[0]
	for _, d := range p.Topology.Devices {
		if d.Rates != best.Rates || d.FLOPS != best.FLOPS || d.Host != best.Host || len(p.Topology.Links) > 0 {
			return nil
		}
		best.CapacityBytes, best.ReservedBytes = max(best.Budget(), d.Budget()), 0
		best.ContextBytes, best.WorkspaceBytes = min(best.ContextBytes, d.ContextBytes), min(best.WorkspaceBytes, d.WorkspaceBytes)
	}
	table.OutputBytes = 0 // of the input's device, which may be any in the order
	q.Costs, q.Pins = &table, nil
	q.Topology = &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{best}, len(p.Topology.Devices))}
	return &q
}

// anyOrder is a step that no map within the caps is below, whatever the order
// of devices; 0 where none is known.
func (p *Problem) anyOrder(ctx context.Context, caps []int64) float64 {
	q := p.relaxed()
	if q == nil {
		return 0
	}
	solver, err := q.timedSolver(ctx)
	if err != nil {
		return 0
	}
	a, err := solver.shortest(ctx, slices.Repeat([]int64{slices.Max(caps)}, len(caps)))
	switch {
	case errors.Is(err, errNone) && a.proved:
		return math.Inf(1)
	case err != nil:
		return 0
	case a.proved:
		return *devicemap.StepSeconds(q.Costs, q.Topology, a.m) * (1 - 1e-12)
	}
	return a.lower
}

// settle closes an answer whose devices kept their order: it is proved where
// its step meets the bound of any order.
func (a *answer) settle(ctx context.Context, p *Problem, caps []int64) {
	if lower := p.anyOrder(ctx, caps); lower > a.lower {
		a.lower, a.bound = lower, "every device as large as the largest"
	}
	if step := devicemap.StepSeconds(p.Costs, p.Topology, a.m); *step*(1-tolerance) <= a.lower {
		a.proved, a.notes = true, nil
	}
	a.even = false
}
