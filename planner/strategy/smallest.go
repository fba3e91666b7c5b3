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
func Smallest(ctx context.Context, p *Problem) []Change {
	if p.Objective != planner.Time {
		return p.told(p.smallest(ctx))
	}
	q := *p
	q.Objective = planner.Memory // what fits at all fits so
	return p.told(timed(ctx, q.smallest(ctx)))
}

func (p *Problem) smallest(ctx context.Context) []Change {
	out := p.outOfOrder(ctx)
	batches, same := false, len(out) > 0
	all := p.edits()
	for _, e := range all {
		if batches && changesBatch(&e) {
			continue // the largest that fits came first
		}
		if c, ok := p.fitting(ctx, p.edited(e)); ok {
			out = append(out, c)
			batches, same = batches || changesBatch(&e), same || !changesTraining(&e)
		}
	}
	others := p.others(ctx)
	if !same && len(others) == 0 {
		full, adapters := split(all)
		others = p.several(ctx, full)
		if len(out) == 0 && len(adapters) > 0 {
			others = append(others, p.several(ctx, slices.Concat(adapters, full))...)
		}
	}
	return slices.Concat(out, others, p.moreGPUs(ctx), p.offloaded(ctx))
}

// fitting is the change to a problem, false where it does not fit.
func (p *Problem) fitting(ctx context.Context, q *Problem) (Change, bool) {
	r, ok := q.first(ctx)
	if !ok || !r.Fits() {
		return Change{}, false
	}
	return p.change(q, &r), true
}

// outOfOrder is the device map that puts any layer on any GPU, where it fits
// and was not what was asked for. It trains the same.
func (p *Problem) outOfOrder(ctx context.Context) []Change {
	if s := p.Workload.Strategy; p.Anywhere || p.Ordered || !s.Traits().Sequential && !p.open() {
		return nil
	}
	q := *p
	q.Anywhere, q.Workload.Strategy = true, costmodel.DeviceMap
	if c, ok := p.fitting(ctx, &q); ok {
		return []Change{c}
	}
	return nil
}

// offloaded is the same map with units that leave for the host, else for disk.
func (p *Problem) offloaded(ctx context.Context) []Change {
	w := &p.Workload
	if !p.MayOffload || p.Stay || p.Anywhere || p.Offload == planner.Disk || w.Mode == costmodel.Train || !w.Strategy.Traits().Sequential {
		return nil
	}
	for _, tier := range []planner.Tier{planner.CPU, planner.Disk} {
		q := *p
		q.Offload = tier
		q.set = append(slices.Clone(p.set), costmodel.Set("offload", tier))
		q.notes = append(slices.Clone(p.notes), "slower: weights travel in every forward")
		if c, ok := p.fitting(ctx, &q); ok {
			return []Change{c}
		}
	}
	return nil
}

// split tells the changes that train the same from those that freeze the
// model.
func split(all []edit) (full, adapters []edit) {
	for _, e := range all {
		if changesTraining(&e) {
			adapters = append(adapters, e)
		} else {
			full = append(full, e)
		}
	}
	return full, adapters
}

func (p *Problem) open() bool {
	return p.Workload.Strategy.Traits().Open
}

// others is the fastest other strategy that fits as the workload stands, with
// the constraints where it can.
func (p *Problem) others(ctx context.Context) []Change {
	if p.open() || ctx.Err() != nil {
		return nil
	}
	q := *p
	w := &q.Workload
	w.Strategy, w.Runtime, w.Schedule, w.VirtualStages, w.ShardDegree = "", "", "", 0, 0
	if w.MicroBatches == 1 {
		w.MicroBatches = 0 // a pipeline would stand idle
	}
	q.Anywhere, q.Offload = false, "" // they are a device map's
	c, ok := p.fitting(ctx, &q)
	if !ok && len(p.Pins)+len(p.Together) > 0 { // which rule out what every GPU runs whole
		q.Pins, q.Together = nil, nil
		c, ok = p.fitting(ctx, &q)
	}
	if !ok {
		return nil
	}
	return []Change{c}
}

// several adds one of the edits to the other until the problem fits, then
// takes back each that it fits without, the most intrusive first.
func (p *Problem) several(ctx context.Context, all []edit) []Change {
	var applied []edit
	var found Change
	ok := false
	for _, e := range all {
		applied = append(applied, e)
		if found, ok = p.fitting(ctx, p.edited(applied...)); ok {
			break
		}
	}
	if !ok {
		return nil
	}
	for i := len(applied) - 2; i >= 0; i-- { // the last was needed
		fewer := slices.Delete(slices.Clone(applied), i, i+1)
		if c, ok := p.fitting(ctx, p.edited(fewer...)); ok {
			applied, found = fewer, c
		}
	}
	return []Change{found}
}
