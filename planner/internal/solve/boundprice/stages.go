package boundprice

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Stages refute loads of contiguous placements on devices of one kind: each
// device is a stage of the row, which can have those items alone whose window of
// stages holds it within the load asked about. The lower that load is, the
// narrower are the windows (destructive bounds: Klein and Scholl, European
// Journal of Operational Research 112, 1999); the prices are as for any
// assignment, with a set of its own for each stage.
type Stages struct {
	nets  *netlist.Netlist
	kind  int
	order []int32
	last  *Bound // of the latest trial: its prices and sets are where the next begins
}

// NewStages is nil where the context ends. The kind is the only one in use.
func NewStages(ctx context.Context, nets *netlist.Netlist, kind int) *Stages {
	used := slices.Repeat([]bool{!nets.Free[kind]}, len(nets.Wires))
	order := nets.ThinOrder(ctx, used)
	if len(order) < len(nets.Nodes) {
		return nil
	}
	return &Stages{nets: nets, kind: kind, order: order}
}

// Refute looks for prices at which the stages cannot take all items within the
// limit, each item within its window, the first and the last of its stages; for
// so much work, in steps of about a nanosecond. It returns nil where there is
// none, or where the context ends: then the trial is open.
func (stages *Stages) Refute(ctx context.Context, limit float64, first, last []int, work int) *boundcheck.Proof {
	if stages.last != nil {
		stages.last.trial = nil
	}
	bound := newBound(stages.nets)
	budget := netlist.Budget{Most: limit * (1 + graph.Rounding), Items: stages.nets.Time[stages.kind]}
	for stage := range stages.nets.Count[stages.kind] {
		var items []int32
		for _, item := range stages.order {
			if first[item] <= stage && stage <= last[item] {
				items = append(items, item)
			}
		}
		frontier := stages.nets.NewFrontierOf(ctx, items, !stages.nets.Free[stages.kind], netlist.Narrow, budget)
		if frontier == nil {
			return nil
		}
		bound.walks(stages.kind, frontier)
	}
	bound.lp = newMaster(len(stages.nets.Nodes), slices.Repeat([]float64{1}, len(bound.walkers)))
	bound.firstPrices()
	bound.staged = true
	if before := stages.last; before != nil {
		copy(bound.prices, before.prices)
		bound.share(before.walkers[0].tables)
		for _, set := range before.lp.sets {
			if !slices.ContainsFunc(set.items, func(item int32) bool { return set.kind < first[item] || last[item] < set.kind }) {
				set.load = bound.loadOf(set.kind, set.items) // walks that left more out had it lower
				bound.lp.add(set)
			}
		}
	}
	stages.last = bound
	bound.lp.limit(limit)
	bound.trial = newTrial(bound, limit, work)
	return stages.Resume(ctx)
}

// Open says that the latest trial had not come to an end when its context did.
func (stages *Stages) Open() bool { return stages.last != nil && stages.last.trial != nil }

// Resume goes on with a trial that is open.
func (stages *Stages) Resume(ctx context.Context) *boundcheck.Proof {
	bound, end := stages.last, open
	for end == open && ctx.Err() == nil {
		bound.rounds++
		end = bound.trial.round(ctx)
	}
	copy(bound.prices, bound.trial.centre)
	if end != refuted && ctx.Err() != nil {
		return nil
	}
	bound.trial = nil
	if end != refuted {
		return nil
	}
	return bound.Proof
}
