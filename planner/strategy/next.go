package strategy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
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
	var out []Change
	for _, count := range []int{len(p.Topology.Devices) - 1, len(p.Topology.Devices) + 1} {
		what := fmt.Sprintf("%d GPUs", count)
		if count == 1 {
			what = "1 GPU"
		}
		out = append(out, p.on(count).tried(ctx, what, math.Inf(1))...)
	}
	batches := false // of several batches the first that helps is told
	for _, e := range p.edits() {
		if batches && changesBatch(&e) {
			continue
		}
		q := *p
		e.apply(&q.Workload)
		got := q.tried(ctx, e.what, lower*value)
		out, batches = append(out, got...), batches || changesBatch(&e) && len(got) > 0
	}
	if s := p.Workload.Strategy; !p.Anywhere && p.Objective != planner.Time && (s == costmodel.DeviceMap || s == "") {
		q := *p
		q.Anywhere = true
		out = append(out, q.tried(ctx, "--contiguous=false", lower*value)...)
	}
	name, q := p.larger()
	return append(out, q.tried(ctx, "--gpu "+name, lower*value)...)
}

// tried is the change to a problem, nil where there is none or no answer, or
// none with a largest share below a value.
func (p *Problem) tried(ctx context.Context, what string, below float64) []Change {
	if p == nil || ctx.Err() != nil {
		return nil
	}
	r, ok := p.edited(ctx)
	if !ok || r.Solution.Value >= below {
		return nil
	}
	return []Change{{what, r}}
}

// lower is how far a change must lower the largest share to be told.
const lower = 0.995

// on is the problem on another number of devices, the last one repeated; nil
// where that makes none.
func (p *Problem) on(count int) *Problem {
	n := len(p.Topology.Devices)
	if count < 1 || count > costmodel.MaxDevices {
		return nil
	}
	devices := slices.Clone(p.Topology.Devices)
	if count > n {
		devices = append(devices, devices[n-1])
	}
	if count > n && len(p.Topology.Links) > 0 {
		return nil // nobody has said what would join it to the others
	}
	q := *p
	topo := *p.Topology
	topo.Devices = devices[:count]
	topo.Links = slices.DeleteFunc(slices.Clone(topo.Links), func(l costmodel.Link) bool { return max(l.From, l.To) >= count })
	q.Topology = &topo
	if q.Workload.ShardDegree == int64(n) {
		q.Workload.ShardDegree = 0 // over all
	}
	return &q
}

// larger is the problem on the GPU of the catalogue with the next larger
// memory; nil where the devices differ, or none is larger.
func (p *Problem) larger() (string, *Problem) {
	now := p.Topology.Devices[0]
	var next catalogue.GPU
	for _, name := range catalogue.Names() {
		const notable = 1.05
		if gpu, err := catalogue.Find(name); err == nil && float64(gpu.CapacityBytes) > notable*float64(now.CapacityBytes) &&
			(next.Name == "" || gpu.CapacityBytes < next.CapacityBytes) {
			next = gpu
		}
	}
	if next.Name == "" {
		return "", nil
	}
	q := *p
	topo := *p.Topology
	topo.Devices = slices.Clone(p.Topology.Devices)
	for d := range topo.Devices {
		if topo.Devices[d].CapacityBytes != now.CapacityBytes {
			return "", nil
		}
		topo.Devices[d] = next.Device(p.Workload.Mode)
		topo.Devices[d].Host, topo.Devices[d].HostBytesPerSecond = p.Topology.Devices[d].Host, p.Topology.Devices[d].HostBytesPerSecond
		topo.Devices[d].ReservedBytes = max(topo.Devices[d].ReservedBytes, p.Topology.Devices[d].ReservedBytes)
	}
	q.Topology = &topo
	return next.Name, &q
}
