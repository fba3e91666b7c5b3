package strategy

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// maxGPUs bounds the search for enough.
const maxGPUs = 64

// moreGPUs is the least number of GPUs that is enough: it doubles, then
// bisects.
func (problem *Problem) moreGPUs(ctx context.Context) []Change {
	on := func(count int) (Change, bool) { return problem.fitting(ctx, problem.on(count)) }
	low := len(problem.Topology.Devices)
	high := 2 * low
	found, ok := Change{}, false
	for ; high <= maxGPUs; high *= 2 {
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
		if change, ok := on(mid); ok {
			high, found = mid, change
		} else {
			low = mid
		}
	}
	return []Change{found}
}

// on is the problem on another number of devices; nil where the request
// cannot say so, or nobody has said what would join them.
func (problem *Problem) on(count int) *Problem {
	if count < 1 || count > costmodel.MaxDevices {
		return nil
	}
	return problem.asking(count, "")
}

// asking is the problem on as many GPUs of a kind ("": as they are); nil where
// the request cannot ask for them.
func (problem *Problem) asking(count int, kind string) *Problem {
	ask := problem.On
	if ask == nil {
		ask = problem.repeated
	}
	topo, set, without := ask(count, kind)
	if topo == nil {
		return nil
	}
	changed := *problem
	changed.Topology, changed.set, changed.without = topo, set, without
	switch _, program := estimate.Native(nil); {
	case changed.Workload.Runtime == program && problem.Workload.Mode == costmodel.Train:
		changed.Workload.ShardDegree = int64(count) // more GPUs help none of them otherwise
	case changed.Workload.ShardDegree == problem.gpus():
		changed.Workload.ShardDegree = 0 // over all
	}
	return &changed
}

// repeated asks for a number and a kind alone; the last device is repeated.
func (problem *Problem) repeated(count int, kind string) (topology *costmodel.Topology, set []costmodel.Setting, without []string) {
	total := len(problem.Topology.Devices)
	if count > total && len(problem.Topology.Links) > 0 {
		return nil, nil, nil // nobody has said what would join it to the others
	}
	topo := *problem.Topology
	topo.Devices = slices.Clone(problem.Topology.Devices[:min(total, count)])
	for range count - total {
		topo.Devices = append(topo.Devices, problem.Topology.Devices[total-1])
	}
	topo.Links = slices.DeleteFunc(slices.Clone(topo.Links), func(link costmodel.Link) bool { return max(link.From, link.To) >= count })
	if count != total {
		set = append(set, costmodel.Set("gpus", count))
	}
	if kind == "" {
		return &topo, set, nil
	}
	gpu, err := catalogue.Find(kind)
	if err != nil {
		return nil, nil, nil
	}
	for device := range topo.Devices {
		was := topo.Devices[device]
		topo.Devices[device] = gpu.Device(problem.Workload.Mode)
		topo.Devices[device].Host, topo.Devices[device].HostBytesPerSecond = was.Host, was.HostBytesPerSecond
		topo.Devices[device].ReservedBytes = max(topo.Devices[device].ReservedBytes, was.ReservedBytes)
	}
	return &topo, append(set, costmodel.Set("gpu", kind)), nil
}
