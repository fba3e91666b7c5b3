package strategy

import (
	"context"
	"slices"
	"strconv"

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

// on is the problem on another number of devices; nil where the command
// cannot ask for that, or nobody has said what would join them.
func (p *Problem) on(count int) *Problem {
	if count < 1 || count > costmodel.MaxDevices {
		return nil
	}
	return p.asking(count, "")
}

// asking is the problem on as many GPUs of a kind ("": as they are); nil where
// the command cannot ask for them.
func (p *Problem) asking(count int, kind string) *Problem {
	ask := p.On
	if ask == nil {
		ask = p.byFlags
	}
	gpus, ok := ask(count, kind)
	if !ok {
		return nil
	}
	q := *p
	q.Topology, q.set, q.without = gpus.Topology, gpus.Set, gpus.Without
	if q.Workload.ShardDegree == p.gpus() {
		q.Workload.ShardDegree = 0 // over all
	}
	return &q
}

// byFlags asks by --gpus and --gpu; the last device is repeated.
func (p *Problem) byFlags(count int, kind string) (GPUs, bool) {
	n := len(p.Topology.Devices)
	if count > n && len(p.Topology.Links) > 0 {
		return GPUs{}, false // nobody has said what would join it to the others
	}
	topo := *p.Topology
	topo.Devices = slices.Clone(p.Topology.Devices[:min(n, count)])
	for range count - n {
		topo.Devices = append(topo.Devices, p.Topology.Devices[n-1])
	}
	topo.Links = slices.DeleteFunc(slices.Clone(topo.Links), func(l costmodel.Link) bool { return max(l.From, l.To) >= count })
	var set []string
	if count != n {
		set = append(set, "--gpus", strconv.Itoa(count))
	}
	if kind == "" {
		return GPUs{Topology: &topo, Set: set}, true
	}
	gpu, err := catalogue.Find(kind)
	if err != nil {
		return GPUs{}, false
	}
	for d := range topo.Devices {
		was := topo.Devices[d]
		topo.Devices[d] = gpu.Device(p.Workload.Mode)
		topo.Devices[d].Host, topo.Devices[d].HostBytesPerSecond = was.Host, was.HostBytesPerSecond
		topo.Devices[d].ReservedBytes = max(topo.Devices[d].ReservedBytes, was.ReservedBytes)
	}
	return GPUs{Topology: &topo, Set: append(set, "--gpu", kind)}, true
}
