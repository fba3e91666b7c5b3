package strategy

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Smallest are the changes that make the problem fit: single ones, each with
// what it comes to, another strategy and more GPUs among them. Where none of
// those that train the same is enough, they include several together. Once
// ctx is done nothing more is tried.
func Smallest(ctx context.Context, problem planner.Problem, options Options) []Change {
	from := newSearch(problem, options)
	switch {
	case from == nil:
		return nil
	case from.Diffusion != nil:
		return distinct(from.smallestPipeline(ctx))
	case !from.timed():
		return distinct(from.smallest(ctx))
	}
	changed := *from
	changed.Objective = planner.Memory // what fits at all fits so
	changed.Fixed = append(slices.Clone(from.Fixed), "offload")
	return distinct(from.within(ctx, changed.smallest(ctx)))
}

func (problem *search) smallest(ctx context.Context) []Change {
	out := problem.outOfOrder(ctx)
	batches, same := false, len(out) > 0
	all := problem.edits()
	for _, change := range all {
		if batches && changesBatch(&change) {
			continue // the largest that fits came first
		}
		if c, ok := problem.fitting(ctx, problem.edited(change)); ok {
			out = append(out, c)
			batches, same = batches || changesBatch(&change), same || !changesTraining(&change)
		}
	}
	others := problem.others(ctx)
	if !same && len(others) == 0 {
		full, adapters := split(all)
		others = problem.several(ctx, full)
		if len(out) == 0 && len(adapters) > 0 {
			others = append(others, problem.several(ctx, slices.Concat(adapters, full))...)
		}
	}
	return slices.Concat(out, others, problem.moreGPUs(ctx), problem.offloaded(ctx))
}

// fitting is the change to a problem, false where it does not fit.
func (problem *search) fitting(ctx context.Context, changed *search) (Change, bool) {
	row, ok := changed.first(ctx)
	if !ok || !row.Fits {
		return Change{}, false
	}
	return problem.change(changed, &row), true
}

// outOfOrder is the device map that puts any layer on any GPU, where it fits
// and was not what was asked for. It trains the same.
func (problem *search) outOfOrder(ctx context.Context) []Change {
	if strategy := problem.Workload.Strategy; problem.Unconstrained || problem.Offload != "" || problem.fixed("contiguous") || !strategy.Traits().Sequential && !problem.open() {
		return nil
	}
	changed := *problem
	changed.Unconstrained, changed.Workload.Strategy = true, costmodel.DeviceMap
	if change, ok := problem.fitting(ctx, &changed); ok {
		return []Change{change}
	}
	return nil
}

// offloaded is the same map with units that leave for the host, else for disk.
func (problem *search) offloaded(ctx context.Context) []Change {
	workload := &problem.Workload
	if problem.fixed("offload") || problem.NoOffload || problem.Unconstrained || problem.Offload == planner.Disk || workload.Mode == costmodel.Train || !workload.Strategy.Traits().Sequential {
		return nil
	}
	for _, tier := range []planner.Tier{planner.CPU, planner.Disk} {
		changed := *problem
		changed.Offload = tier
		changed.set = append(slices.Clone(problem.set), costmodel.Set("offload", tier))
		changed.notes = append(slices.Clone(problem.notes), "slower: weights travel in every forward")
		if change, ok := problem.fitting(ctx, &changed); ok {
			return []Change{change}
		}
	}
	return nil
}

// split tells the changes that train the same from those that freeze the
// model.
func split(all []edit) (full, adapters []edit) {
	for _, change := range all {
		if changesTraining(&change) {
			adapters = append(adapters, change)
		} else {
			full = append(full, change)
		}
	}
	return full, adapters
}

// fixed reports a field that no change sets.
func (problem *search) fixed(field string) bool { return slices.Contains(problem.Fixed, field) }

// others is the fastest other strategy that fits as the workload stands, with
// the constraints where it can.
func (problem *search) others(ctx context.Context) []Change {
	if problem.open() || ctx.Err() != nil {
		return nil
	}
	changed := *problem
	workload := &changed.Workload
	workload.Strategy, workload.Schedule, workload.VirtualStages, workload.ShardDegree = "", "", 0, 0
	workload.DP, workload.TP = 0, 0           // they are a pipeline's
	if workload.Runtime != costmodel.Devmap { // who asks for that engine wants no other
		workload.Runtime = ""
	}
	if workload.MicroBatches == 1 {
		workload.MicroBatches = 0 // a pipeline would stand idle
	}
	changed.Unconstrained, changed.Offload = false, "" // they are a device map's
	change, ok := problem.fitting(ctx, &changed)
	if !ok && len(problem.Pins)+len(problem.Together) > 0 { // which rule out what every GPU runs whole
		changed.Pins, changed.Together = nil, nil
		change, ok = problem.fitting(ctx, &changed)
	}
	if !ok {
		return nil
	}
	return []Change{change}
}

// several adds one of the edits to the other until the problem fits, then
// takes back each that it fits without, the most intrusive first.
func (problem *search) several(ctx context.Context, all []edit) []Change {
	var applied []edit
	var found Change
	ok := false
	for _, change := range all {
		applied = append(applied, change)
		if found, ok = problem.fitting(ctx, problem.edited(applied...)); ok {
			break
		}
	}
	if !ok {
		return nil
	}
	for i := len(applied) - 2; i >= 0; i-- { // the last was needed
		fewer := slices.Delete(slices.Clone(applied), i, i+1)
		if change, ok := problem.fitting(ctx, problem.edited(fewer...)); ok {
			applied, found = fewer, change
		}
	}
	return []Change{found}
}
