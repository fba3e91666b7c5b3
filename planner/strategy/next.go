package strategy

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// Next are the next-best changes, each tried out whether it then fits or not:
// a GPU less or more, the edits that lower the largest share (or the step, where
// that is the objective) below value, any
// assignment in place of a contiguous map, and the next larger GPU. Those that
// change what is trained are among them. They stand in the order of what they
// change, not of what they give.
func Next(ctx context.Context, p *Problem, value float64) []Change {
	n := len(p.Topology.Devices)
	out := slices.Concat(p.tried(ctx, p.on(n-1), math.Inf(1)), p.tried(ctx, p.on(n+1), math.Inf(1)))
	batches := false // of several batches the first that helps is told
	for _, e := range p.edits() {
		if batches && changesBatch(&e) {
			continue
		}
		got := p.tried(ctx, p.edited(e), notable*value)
		out, batches = append(out, got...), batches || changesBatch(&e) && len(got) > 0
	}
	if s := p.Workload.Strategy; !p.Anywhere && p.Objective != planner.Time && (s.Traits().Sequential || s == "") {
		q := *p
		q.Anywhere = true
		out = append(out, p.tried(ctx, &q, notable*value)...)
	}
	return p.told(append(out, p.tried(ctx, p.larger(), notable*value)...))
}

// tried is the change to a problem, nil where there is none or no answer, or
// none with a largest share below a value.
func (p *Problem) tried(ctx context.Context, q *Problem, below float64) []Change {
	r, ok := q.first(ctx)
	if !ok || r.Solution.Value >= below {
		return nil
	}
	return []Change{p.change(q, &r)}
}

// Alternatives are for a map whose largest share, value, one unit sets by
// itself. fewer is the change to the least number of GPUs that do as well, nil
// where all are needed; lower are the single changes that lower it, whether
// they fit or not.
func Alternatives(ctx context.Context, p *Problem, value float64) (fewer, lower []Change) {
	return fewest(ctx, p, value), lowering(ctx, p, value)
}

// lowering are the single changes that lower the largest share below value,
// whether they fit or not, of the same training: no adapters in its place. Of
// several batches the first is told.
func lowering(ctx context.Context, p *Problem, value float64) []Change {
	var out []Change
	batches := false
	for _, e := range p.edits() {
		batch := changesBatch(&e)
		if batch && batches || changesTraining(&e) {
			continue
		}
		q := p.edited(e)
		if r, ok := q.first(ctx); ok && r.Solution.Value < notable*value {
			out = append(out, p.change(q, &r))
			batches = batches || batch
		}
	}
	return p.told(out)
}

// fewest is the change to the least number of GPUs, from the first on, that
// reach the same largest share; nil where all are needed, or the request
// cannot ask for them. One more never makes it worse, so it bisects.
func fewest(ctx context.Context, p *Problem, value float64) []Change {
	if p.Workload.Strategy.Traits().Staged { // with fewer stages others are in flight
		return nil
	}
	n := len(p.Topology.Devices)
	reaches := func(i int) bool {
		r, ok := p.on(i + 1).first(ctx)
		return ok && r.Solution.Value <= value
	}
	least := 1 + sort.Search(n-1, reaches)
	if least == n {
		return nil
	}
	return p.told(p.tried(ctx, p.on(least), math.Inf(1)))
}

// notable is how far a change must lower the largest share to be told.
const notable = 0.995

// larger is the problem on the GPU of the catalogue with the next larger
// memory; nil where the devices differ, or none is larger.
func (p *Problem) larger() *Problem {
	now := p.Topology.Devices[0]
	for d := range p.Topology.Devices {
		if p.Topology.Devices[d].CapacityBytes != now.CapacityBytes {
			return nil
		}
	}
	var next catalogue.GPU
	for _, name := range catalogue.Names() {
		const larger = 1.05
		if gpu, err := catalogue.Find(name); err == nil && float64(gpu.CapacityBytes) > larger*float64(now.CapacityBytes) &&
			(next.Name == "" || gpu.CapacityBytes < next.CapacityBytes) {
			next = gpu
		}
	}
	if next.Name == "" {
		return nil
	}
	return p.asking(len(p.Topology.Devices), next.Name)
}
