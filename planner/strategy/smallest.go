package strategy

import (
	"context"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// Smallest are the changes that make the problem fit: single ones, each with
// what it comes to, another strategy and more GPUs among them. Where none of
// those that train the same is enough, they include several together. Once
// ctx is done nothing more is tried.
func Smallest(ctx context.Context, p *Problem) []Change {
	out := p.outOfOrder(ctx)
	batches, same := false, len(out) > 0
	all := p.edits()
	for _, e := range all {
		if batches && changesBatch(&e) {
			continue // the largest that fits came first
		}
		if r, ok := p.edited(ctx, e); ok && r.Fits() {
			out = append(out, p.change(e.what, r))
			batches, same = batches || changesBatch(&e), same || !changesTraining(&e)
		}
	}
	others := p.others(ctx)
	if !same && len(others) == 0 {
		full, adapters := split(all)
		others = p.together(ctx, full)
		if len(out) == 0 && len(adapters) > 0 {
			others = append(others, p.together(ctx, slices.Concat(adapters, full))...)
		}
	}
	return slices.Concat(out, others, p.moreGPUs(ctx))
}

// outOfOrder is the device map that puts any layer on any GPU, where it fits
// and was not what was asked for. It trains the same.
func (p *Problem) outOfOrder(ctx context.Context) []Change {
	if s := p.Workload.Strategy; p.Anywhere || p.Ordered || s != costmodel.DeviceMap && !p.open() {
		return nil
	}
	q := *p
	q.Anywhere, q.Workload.Strategy = true, costmodel.DeviceMap
	r, ok := q.edited(ctx)
	if !ok || !r.Fits() {
		return nil
	}
	return []Change{p.change("--contiguous=false", r)}
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

// change names the strategy too where the user left it open.
func (p *Problem) change(what string, r Row) Change {
	if p.open() {
		what = strings.TrimSpace(what + " --strategy " + string(r.Workload.Strategy))
	}
	return Change{what, r}
}

func (p *Problem) open() bool {
	return p.Workload.Strategy == "" || p.Workload.Strategy == costmodel.Auto
}

// others is the fastest other strategy that fits as the workload stands.
func (p *Problem) others(ctx context.Context) []Change {
	if p.open() || ctx.Err() != nil {
		return nil
	}
	q := *p
	q.Workload.Strategy, q.Workload.Runtime, q.Workload.Schedule, q.Workload.ShardDegree = "", "", "", 0
	r := Best(Rows(ctx, &q))
	if r == nil {
		return nil
	}
	return []Change{q.change("", *r)}
}

// together adds one of the edits to the other until the problem fits, then takes back
// each that it fits without, the most intrusive first.
func (p *Problem) together(ctx context.Context, all []edit) []Change {
	var applied []edit
	var found Row
	ok := false
	for _, e := range all {
		applied = append(applied, e)
		if found, ok = p.edited(ctx, applied...); ok && found.Fits() {
			break
		}
	}
	if !ok || !found.Fits() {
		return nil
	}
	for i := len(applied) - 2; i >= 0; i-- { // the last was needed
		fewer := slices.Delete(slices.Clone(applied), i, i+1)
		if r, ok := p.edited(ctx, fewer...); ok && r.Fits() {
			applied, found = fewer, r
		}
	}
	var what []string
	for _, e := range applied {
		what = append(what, e.what)
	}
	return []Change{p.change(strings.Join(what, " "), found)}
}
