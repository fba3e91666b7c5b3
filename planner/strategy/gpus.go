package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// maxGPUs bounds the search for more GPUs. Beyond oneByOne, their number is a multiple of hostGPUs.
const (
	maxGPUs  = 1024
	oneByOne = 64
	hostGPUs = 8
)

// moreGPUs is the change to the least sufficient number of GPUs: it doubles, then bisects. Hosts
// stay whole.
func (problem *remedies) moreGPUs(ctx context.Context, changed *search) []Change {
	on := func(count int) []Change { return problem.fitting(ctx, changed.on(count)) }
	low := len(problem.Topology.Devices)
	high := 2 * low
	var found []Change
	for ; high <= maxGPUs; high *= 2 {
		if found = on(high); found != nil {
			break
		}
		low = high
	}
	step := max(1, eachHost(problem.Topology.Devices))
	if high > oneByOne {
		step = max(step, hostGPUs)
	}
	for found != nil {
		mid := (low + high) / 2 / step * step
		if mid <= low {
			break
		}
		if fits := on(mid); fits != nil {
			high, found = mid, fits
		} else {
			low = mid
		}
	}
	return found
}

// eachHost is the number of GPUs of each host of --nodes; 0: there is one host, or a file names them.
func eachHost(devices []costmodel.Device) int {
	each := slices.IndexFunc(devices, func(device costmodel.Device) bool { return device.Host != devices[0].Host })
	for i := range devices {
		if each > 0 && devices[i].Host != hostName(i/each) {
			return 0
		}
	}
	return max(0, each)
}

// hostName is the name of a host of --nodes.
func hostName(index int) string { return fmt.Sprintf("node%d", index) }

// larger are the problem on each larger GPU of the same maker and at least the same speed, the
// smallest first. Empty if the devices differ or the catalogue lacks them.
func (problem *search) larger() []*search {
	now, err := catalogue.Find(problem.Topology.Devices[0].Name)
	if err != nil || slices.ContainsFunc(problem.Topology.Devices, func(device costmodel.Device) bool { return device.Name != now.Name }) {
		return nil
	}
	var kinds []catalogue.GPU
	for _, name := range catalogue.Names() {
		const more = 1.05
		gpu, err := catalogue.Find(name)
		if err == nil && float64(gpu.CapacityBytes) > more*float64(now.CapacityBytes) && amd(&gpu) == amd(&now) &&
			gpu.BF16FLOPS >= now.BF16FLOPS && gpu.BytesPerSecond >= now.BytesPerSecond {
			kinds = append(kinds, gpu)
		}
	}
	slices.SortStableFunc(kinds, func(a, b catalogue.GPU) int { return cmp.Compare(a.CapacityBytes, b.CapacityBytes) })
	var out []*search
	for i := range kinds {
		if changed := problem.asking(len(problem.Topology.Devices), kinds[i].Name); changed != nil {
			out = append(out, changed)
		}
	}
	return out
}

// amd reports a GPU of AMD: a job can move to a GPU of the same maker without a rebuild.
func amd(gpu *catalogue.GPU) bool { return strings.HasPrefix(gpu.Name, "mi") }

// largerGPU is the change to the smallest larger GPU on which the problem fits.
func (problem *remedies) largerGPU(ctx context.Context) []Change {
	for _, changed := range problem.larger() {
		if fits := problem.fitting(ctx, changed); fits != nil {
			return fits
		}
	}
	return nil
}

// on is the problem on another number of devices. It is nil if the request cannot ask for it, or
// the links of the new devices are unknown.
func (problem *search) on(count int) *search {
	if count < 1 || count > costmodel.MaxDevices {
		return nil
	}
	return problem.asking(count, "")
}

// asking is the problem on count GPUs of a kind ("": unchanged). The largest is repeated; nil if
// the request cannot ask for them.
func (problem *search) asking(count int, kind string) *search {
	total := len(problem.Topology.Devices)
	topology := problem.withCount(count)
	if topology == nil || problem.fixed("gpus") || kind != "" && problem.fixed("gpu") {
		return nil
	}
	changed := *problem
	changed.Topology, changed.set = topology, nil
	if count != total {
		changed.set = append(changed.set, costmodel.Set("gpus", count))
	}
	if kind != "" {
		gpu, err := catalogue.Find(kind)
		if err != nil {
			return nil
		}
		for device := range topology.Devices {
			topology.Devices[device] = inPlaceOf(topology.Devices[device], gpu.Device(problem.Workload.Mode), problem.Workload.Mode)
		}
		changed.set = append(changed.set, costmodel.Set("gpu", kind))
	}
	switch _, program := estimate.Native(nil); {
	case changed.Workload.Runtime == program && problem.Workload.Mode == costmodel.Train:
		changed.Workload.ShardDegree = int64(count) // more GPUs help no GPU otherwise
	case changed.Workload.ShardDegree == problem.gpus():
		changed.Workload.ShardDegree = 0 // over all
	}
	return &changed
}

// withCount is a topology of count GPUs; nil if their links are unknown, or hosts would have
// different numbers.
func (problem *search) withCount(count int) *costmodel.Topology {
	total, each, topology := len(problem.Topology.Devices), eachHost(problem.Topology.Devices), problem.other()
	if count > total && len(topology.Links) > 0 || each > 0 && count%each > 0 {
		return nil
	}
	more := slices.MaxFunc(topology.Devices, func(a, b costmodel.Device) int { return cmp.Compare(a.Budget(), b.Budget()) })
	topology.Devices = slices.Concat(topology.Devices[:min(total, count)], slices.Repeat([]costmodel.Device{more}, max(0, count-total)))
	for i := total; i < count && each > 0; i++ {
		topology.Devices[i].Host = hostName(i / each)
	}
	topology.Links = slices.DeleteFunc(slices.Clone(topology.Links), func(link costmodel.Link) bool { return max(link.From, link.To) >= count })
	return topology
}

// other is the topology that other numbers of GPUs are taken from.
func (problem *search) other() *costmodel.Topology {
	if problem.Devices != nil {
		return &costmodel.Topology{Devices: problem.Devices}
	}
	topology := *problem.Topology
	return &topology
}

// inPlaceOf is a GPU in another's host. It reserves as much for others, in addition to its kind's
// reserve.
func inPlaceOf(was, gpu costmodel.Device, mode costmodel.Mode) costmodel.Device {
	gpu.Host, gpu.HostBytesPerSecond = was.Host, was.HostBytesPerSecond
	own := int64(0)
	if kind, err := catalogue.Find(was.Name); err == nil {
		spared := kind.Device(mode)
		own = spared.ReservedBytes
	}
	gpu.ReservedBytes += max(0, was.ReservedBytes-own)
	return gpu
}
