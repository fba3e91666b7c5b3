package strategy

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// mostGPUs bounds the search for enough.
const mostGPUs = 64

// moreGPUs is the least number of GPUs that is enough: it doubles, then
// bisects.
func (p *Problem) moreGPUs(ctx context.Context) []Change {
	on := func(n int) (Change, bool) { return p.fitting(ctx, p.on(n)) }
	low := len(p.Topology.Devices)
	high := 2 * low
	found, ok := Change{}, false
	for ; high <= mostGPUs; high *= 2 {
		if found, ok = on(high); ok {
			break
		}
		low = high
	}
	if !ok {
		return nil
	}
	for low+1 < high {
		mid := (low + high) / 2
		if c, ok := on(mid); ok {
			high, found = mid, c
		} else {
			low = mid
		}
	}
	return []Change{found}
}

// on is the problem on another number of devices; nil where the request
// cannot say so, or nobody has said what would join them.
func (p *Problem) on(count int) *Problem {
	if count < 1 || count > costmodel.MaxDevices {
		return nil
	}
	return p.asking(count, "")
}

// asking is the problem on as many GPUs of a kind ("": as they are); nil where
// the request cannot ask for them.
func (p *Problem) asking(count int, kind string) *Problem {
	ask := p.On
	if ask == nil {
		ask = p.repeated
	}
	topo, set, without := ask(count, kind)
	if topo == nil {
		return nil
	}
	q := *p
	q.Topology, q.set, q.without = topo, set, without
	if q.Workload.ShardDegree == p.gpus() {
		q.Workload.ShardDegree = 0 // over all
	}
	return &q
}

// repeated asks for a number and a kind alone; the last device is repeated.
func (p *Problem) repeated(count int, kind string) (topology *costmodel.Topology, set []costmodel.Setting, without []string) {
	n := len(p.Topology.Devices)
	if count > n && len(p.Topology.Links) > 0 {
		return nil, nil, nil // nobody has said what would join it to the others
	}
	topo := *p.Topology
	topo.Devices = slices.Clone(p.Topology.Devices[:min(n, count)])
	for range count - n {
		topo.Devices = append(topo.Devices, p.Topology.Devices[n-1])
	}
	topo.Links = slices.DeleteFunc(slices.Clone(topo.Links), func(l costmodel.Link) bool { return max(l.From, l.To) >= count })
	if count != n {
		set = append(set, costmodel.Set("gpus", count))
	}
	if kind == "" {
		return &topo, set, nil
	}
	gpu, err := catalogue.Find(kind)
	if err != nil {
		return nil, nil, nil
	}
	for d := range topo.Devices {
		was := topo.Devices[d]
		topo.Devices[d] = gpu.Device(p.Workload.Mode)
		topo.Devices[d].Host, topo.Devices[d].HostBytesPerSecond = was.Host, was.HostBytesPerSecond
		topo.Devices[d].ReservedBytes = max(topo.Devices[d].ReservedBytes, was.ReservedBytes)
	}
	return &topo, append(set, costmodel.Set("gpu", kind)), nil
}
