package costmodel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// ring is the speed of a collective between GPUs of a stage: bytes that each sends a second, and
// the fixed time of a call.
type ring struct{ BytesPerSecond, Seconds float64 }

// Folded returns the topology with one device for each stage, if stages have several GPUs
// ([Workload.DP], TP). A stage's GPUs are consecutive, those that share matrices innermost
// (torchtitan's mesh: pp, dp, tp). A stage has its GPUs' smallest budget and slowest speed. Folded
// returns topology itself if each stage is one device.
func (table *Table) Folded(topology *Topology) *Topology {
	sizes := table.stageSizes(len(topology.Devices))
	if sizes == nil {
		return topology
	}
	out := &Topology{HostMemoryBytes: topology.HostMemoryBytes}
	stageOf, placeIn := make([]int, len(topology.Devices)), make([]int, len(topology.Devices))
	first := 0
	for stage, size := range sizes {
		for place := range size.gpus {
			stageOf[first+place], placeIn[first+place] = stage, place
		}
		out.Devices, out.Starts = append(out.Devices, topology.stage(first, size)), append(out.Starts, first)
		first += size.gpus
	}
	out.Links = stageLinks(topology, sizes, stageOf, placeIn)
	return out
}

// openDegree reports a degree that is still to be chosen.
func (workload *Workload) openDegree() bool {
	return slices.Contains([]Degree{workload.DP, workload.TP, workload.CP, workload.EP, workload.PP}, AutoDegree)
}

// stageSize is the number of a stage's GPUs, and how many share matrices, a sequence's tokens, and
// a layer's experts.
type stageSize struct{ gpus, tensor, context, expert int }

// stageSizes are the sizes of all stages; nil if each is one device.
func (table *Table) stageSizes(devices int) []stageSize {
	workload := &table.Workload
	if !workload.Strategy.Traits().Staged || int64(devices) != workload.World {
		return nil
	}
	var out []stageSize
	all := 0
	for _, stage := range table.Stages {
		out = append(out, sizeOf(&stage.Workload))
		all += out[len(out)-1].gpus
	}
	if out != nil && all == devices {
		return out
	}
	if workload.openDegree() || workload.Recompute == value.RecomputeAuto {
		return nil // how many GPUs a stage has, or in which form, is still to be chosen
	}
	size := sizeOf(workload)
	if size.gpus == 1 {
		return nil
	}
	for first := 0; first+size.gpus <= devices; first += size.gpus {
		out = append(out, size)
	}
	return out
}

func sizeOf(workload *Workload) stageSize {
	tensor, context := int(workload.TP.Count()), int(workload.CP.Count())
	return stageSize{tensor * context * int(workload.DP.Count()), tensor, context, int(workload.EP.Count())}
}

// stage is the device that represents the GPUs from one on.
func (topology *Topology) stage(first int, size stageSize) Device {
	gpus := topology.Devices[first : first+size.gpus]
	out := gpus[0]
	hosts := []string{out.Host}
	for i := range gpus[1:] {
		gpu := &gpus[i+1]
		if gpu.FLOPS < out.FLOPS {
			out.FLOPS, out.Rates = gpu.FLOPS, gpu.Rates
		}
		if gpu.Budget() < out.Budget() {
			out.CapacityBytes, out.ReservedBytes = gpu.CapacityBytes, gpu.ReservedBytes
		}
		out.WorkspaceBytes, out.ContextBytes = max(out.WorkspaceBytes, gpu.WorkspaceBytes), max(out.ContextBytes, gpu.ContextBytes)
		if gpu.Host != hosts[len(hosts)-1] {
			hosts = append(hosts, gpu.Host)
		}
	}
	out.Host = strings.Join(hosts, "+")
	for from := 0; from < size.gpus; from += size.tensor {
		out.Tensor = slower(out.Tensor, topology.ring(first+from, first+from+size.tensor, 1))
	}
	for from := range size.tensor {
		out.Data = slower(out.Data, topology.ring(first+from, first+size.gpus, size.tensor))
	}
	out.Context = topology.groups(first, size, size.context)
	out.Expert = topology.groups(first, size, size.expert)
	return out
}

// groups is the slowest ring of count neighbours among the GPUs with one part of the matrices.
// Context parallelism is next to tensor parallelism, experts lie within (Megatron-LM,
// core/parallel_state.py, order tp-cp-ep-dp-pp).
func (topology *Topology) groups(first int, size stageSize, count int) (out ring) {
	if count < 2 {
		return out
	}
	for from := range size.tensor {
		for at := from; at < size.gpus; at += size.tensor * count {
			out = slower(out, topology.ring(first+at, first+min(at+size.tensor*count, size.gpus), size.tensor))
		}
	}
	return out
}

func slower(one, other ring) ring {
	if one == (ring{}) {
		return other
	}
	return ring{min(one.BytesPerSecond, other.BytesPerSecond), max(one.Seconds, other.Seconds)}
}

// ring is the ring of every step-th GPU of [from, end): as slow as its slowest link. It takes no
// time if no rate is known.
func (topology *Topology) ring(from, end, step int) ring {
	var out ring
	var latency float64
	slow := func(rate float64) {
		if rate > 0 {
			out.BytesPerSecond = min(cmp.Or(out.BytesPerSecond, rate), rate)
		}
	}
	for at := from; at < end; at += step {
		gpu, next := &topology.Devices[at], at+step
		if next >= end {
			next = from
		}
		slow(gpu.CollectiveBytesPerSecond)
		out.Seconds = max(out.Seconds, gpu.CollectiveSeconds)
		if at == next {
			continue
		}
		if link := topology.link(at, next); link != nil {
			slow(link.BytesPerSecond)
			latency = max(latency, link.LatencySeconds)
		} else if topology.apart(at, next) {
			slow(min(gpu.HostBytesPerSecond, topology.Devices[next].HostBytesPerSecond))
		}
	}
	out.Seconds += float64((end-from+step-1)/step-1) * latency
	return out
}

// stageLinks are the links between stages, if the topology has links. Each GPU sends to the GPU in
// its place, all at the slowest link's speed. Stages have none if one GPU lacks such a link.
func stageLinks(topology *Topology, sizes []stageSize, stageOf, placeIn []int) []Link {
	at := make(map[[2]int]int)
	var out []Link
	var found []int
	for i := range topology.Links {
		link := &topology.Links[i]
		from, to := stageOf[link.From], stageOf[link.To]
		if from == to || placeIn[link.From]%sizes[to].gpus != placeIn[link.To]%sizes[from].gpus {
			continue
		}
		index, known := at[[2]int{from, to}]
		if !known {
			index = len(out)
			at[[2]int{from, to}] = index
			out, found = append(out, Link{from, to, link.BytesPerSecond, link.LatencySeconds}), append(found, 0)
		}
		out[index].BytesPerSecond = min(out[index].BytesPerSecond, link.BytesPerSecond)
		out[index].LatencySeconds = max(out[index].LatencySeconds, link.LatencySeconds)
		found[index]++
	}
	retained := out[:0]
	for index, link := range out {
		if found[index] >= min(sizes[link.From].gpus, sizes[link.To].gpus) {
			retained = append(retained, link)
		}
	}
	return retained
}
