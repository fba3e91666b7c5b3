package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// timeAnywhere finds a short step of a device map whose units go on any
// device: a local search from the contiguous optimum, with bounds that hold
// for any assignment.
func (p *Problem) timeAnywhere(ctx context.Context, s Settings) (*Solution, error) {
	sc, err := newScatter(p)
	if err != nil {
		return nil, err
	}
	start, err := p.timeInOrder(ctx, s)
	if err != nil {
		return nil, err
	}
	if start != nil && p.fewerDevices() < len(p.Topology.Devices) {
		start.Warnings = append(start.Warnings, "any assignment was not searched: the units and devices are too many for its tables")
		return start, nil // its bound is that of each unit on its fastest device, which holds for any
	}
	var from devicemap.Map
	if start != nil {
		from = start.Map
	} else {
		half, cancel := halfOf(ctx)
		memory, err := p.anywhere(half, s)
		cancel()
		if err != nil {
			return memory, err
		}
		from = memory.Map
	}
	w := newAnyWalk(ctx, sc, from)
	w.run()
	if err := p.linked(w.best); err != nil {
		return nil, err
	}
	return p.scattered(w, start)
}

// halfOf ends after half of the time that is left.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/2)
	}
	return context.WithCancel(ctx)
}

// timeInOrder is the shortest step found of a contiguous map, in half of the
// time; nil where there is none.
func (p *Problem) timeInOrder(ctx context.Context, s Settings) (*Solution, error) {
	ctx, cancel := halfOf(ctx)
	defer cancel()
	q := *p
	q.Anywhere = false
	sol, err := q.solveTime(ctx, s)
	var (
		pattern  *PatternError
		conflict *ConflictError
		link     *LinkError
		large    *InfeasibleError
	)
	if errors.As(err, &pattern) || errors.As(err, &conflict) || errors.As(err, &link) || errors.As(err, &large) {
		return nil, nil //nolint:nilnil // no such map, and no fault of ours
	}
	return sol, err
}

// scattered is the answer of a search.
func (p *Problem) scattered(w *anyWalk, start *Solution) (*Solution, error) {
	a := &answer{m: w.best, step: w.bestScore.step, stopped: w.ctx.Err() != nil, tried: w.tried}
	for _, b := range w.bounds {
		if a.bound == "" || b.Value > a.lower {
			a.lower, a.bound = b.Value, b.Name
		}
	}
	if note := p.sentNote(a.m, nil); note != "" && (start == nil || !slices.Equal(a.m, start.Map)) {
		if start != nil {
			note += fmt.Sprintf(", %v under the best contiguous map (step %.4g s)", costmodel.Bytes(p.Sent(start.Map)), start.Value)
		}
		a.notes = append(a.notes, note)
	}
	sol, err := p.timedSolution(a)
	if err != nil {
		return nil, err
	}
	sol.Bounds = w.bounds
	return sol, nil
}
