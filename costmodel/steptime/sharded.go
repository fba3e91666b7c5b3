package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// sharded is one step of FSDP2, HSDP or ZeRO-3 on device. A unit is gathered while the one before
// it runs; gradients are scattered while the next unit's backward runs. A group's collectives share
// one stream (ProcessGroupNCCL); HSDP's all-reduce has another. Source:
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: unshard, wait_for_unshard,
// _prefetch_unshard, post_backward.
func (step *timing) sharded(device int) float64 {
	gather := step.gather(device)
	var update float64
	for unit := range gather.seconds {
		seconds := Unit(step.table, step.topo, device, unit)
		gather.seconds[unit], update = seconds, update+seconds.Update
	}
	once := gather.pass(step.trains())
	total := step.microBatches() * once
	step.record.repeat(0, once, int64(step.microBatches())-1)
	gather.record = nil
	if step.tokens() > 0 {
		for unit := range gather.seconds {
			gather.seconds[unit].Forward, gather.seconds[unit].Issue = gather.seconds[unit].Token, gather.seconds[unit].IssueToken
		}
		total += step.tokens() * gather.pass(false)
	}
	step.record.add(Span{device, streamCompute, doesDecode, 0, 0, -1, step.microBatches() * once, total})
	if step.trains() {
		update /= float64(gather.degree)
		step.record.add(Span{device, streamCompute, doesUpdate, 0, 0, -1, total, total + update})
		total += update
	}
	return total
}

// gatherer runs a sharded pass over the units.
type gatherer struct {
	*timing
	record         *recorder
	index          int // of the device
	device         *costmodel.Device
	seconds        []UnitSeconds // by unit
	degree         int64         // GPUs that a parameter is cut over
	replicas       int64         // HSDP: groups of them
	compute, grads int64         // bytes an element, gathered and reduced
	root           int64         // elements of the units that are in no block
	clock          deviceClock
	stream, reduce float64 // when the groups' streams are free
}

func (step *timing) gather(device int) *gatherer {
	workload := &step.table.Workload
	gpus := int64(len(step.topo.Devices))
	gather := &gatherer{
		timing: step, record: step.record, index: device, device: &step.topo.Devices[device], seconds: make([]UnitSeconds, len(step.table.Units)),
		degree: min(gpus, max(1, workload.ShardDegree)), compute: wire(workload), grads: reduced(workload),
	}
	gather.replicas = gpus / gather.degree
	for unit := range step.table.Units {
		if work := &step.table.Units[unit].Work; !work.Block {
			gather.root += work.Weights
		}
	}
	return gather
}

// pass is one micro-batch: forward, and backward if it trains. The root's
// parameters are gathered first and stay to the end.
func (gather *gatherer) pass(train bool) float64 {
	gather.clock, gather.stream, gather.reduce = deviceClock{}, 0, 0
	gather.unshard(gather.root)
	gather.opened(gather.stream, gather.root)
	units := gather.table.Units
	ready := gather.prefetched(0, 1)
	for unit := range units {
		work := &units[unit].Work
		if work.Block {
			gather.opened(ready, work.Weights)
			ready = gather.prefetched(unit+1, 1)
		}
		gather.ran(unit, doesForward, gather.seconds[unit].Issue, gather.seconds[unit].Forward)
	}
	if !train {
		return gather.clock.Device
	}
	ready = gather.prefetched(len(units)-1, -1)
	for unit := len(units) - 1; unit >= 0; unit-- {
		work := &units[unit].Work
		if work.Block {
			gather.opened(ready, work.Weights)
			ready = gather.prefetched(unit-1, -1)
		}
		gather.ran(unit, doesBackward, gather.seconds[unit].IssueBack, gather.seconds[unit].Backward)
		if work.Block {
			gather.scatter(work.Trained)
		}
	}
	var rest int64
	for unit := range units {
		if work := &units[unit].Work; !work.Block {
			rest += work.Trained
		}
	}
	gather.scatter(rest)
	return max(gather.clock.Device, gather.stream, gather.reduce)
}

// ran is a unit's pass; the host issues its kernels and hooks.
func (gather *gatherer) ran(unit int, what string, issue, length float64) {
	work, start := &gather.table.Units[unit].Work, gather.clock.Device
	gather.clock.Host += issue
	hooks := 0.
	if work.Block {
		hooks = float64(work.Tensors) * gather.device.ShardedIssueSeconds
	}
	gather.clock.run(hooks, length)
	gather.record.add(Span{gather.index, streamCompute, what, unit, unit + 1, 0, start, gather.clock.Device})
}

// prefetched issues the all-gather of the next block from unit on, and is when it ends.
func (gather *gatherer) prefetched(unit, step int) float64 {
	for ; unit >= 0 && unit < len(gather.table.Units); unit += step {
		if work := &gather.table.Units[unit].Work; work.Block {
			gather.unshard(work.Weights)
			break
		}
	}
	return gather.stream
}

// unshard copies a unit's shards to the gather's input, in the compute
// precision (_fsdp_collectives.py all_gather_copy_in), and gathers them.
func (gather *gatherer) unshard(weights int64) {
	copied := float64(weights*(gather.compute+ops.WeightBytes(gather.table.Workload.Precision))) / float64(gather.degree)
	gather.stream = max(gather.stream, gather.clock.Device) + over(copied, gather.strided())
	gather.stream = gather.collect(doesGather, gather.stream, ringPart(gather.degree)*float64(weights*gather.compute), gather.degree)
}

// collect is when a collective ends that starts when its stream is free; the
// processors that it occupies are lost to kernels.
func (gather *gatherer) collect(what string, free, bytes float64, gpus int64) float64 {
	seconds := gather.overlapped(bytes, gpus)
	end := max(free, gather.clock.Device) + seconds
	gather.record.add(Span{gather.index, streamCollectives, what, 0, 0, 0, end - seconds, end})
	gather.clock.Device += seconds * gather.device.CollectiveShare
	return end
}

func (gather *gatherer) strided() float64 {
	return cmp.Or(gather.device.StridedBytesPerSecond, gather.device.BytesPerSecond)
}

// opened waits for a gathered unit and copies it out to its parameters
// (_fsdp_collectives.py foreach_all_gather_copy_out).
func (gather *gatherer) opened(ready float64, weights int64) {
	gather.clock.await(ready)
	if gather.degree > 1 {
		gather.clock.Device += over(2*float64(weights*gather.compute), gather.device.BytesPerSecond)
	}
}

// scatter copies gradients to the reduction's input (_fsdp_collectives.py
// foreach_reduce_scatter_copy_in), reduces them and, under HSDP, sums the parts over the replicas.
func (gather *gatherer) scatter(trained int64) {
	rate := gather.device.BytesPerSecond
	if gather.compute != gather.grads {
		rate = gather.strided() // a cast up
	}
	gather.clock.Device += over(float64(trained*(gather.compute+gather.grads)), rate)
	bytes := float64(trained * gather.grads)
	gather.stream = gather.collect(doesReduce, gather.stream, ringPart(gather.degree)*bytes, gather.degree)
	if gather.replicas > 1 {
		part := bytes / float64(gather.degree)
		gather.reduce = gather.collect(doesReduce, max(gather.reduce, gather.stream), 2*ringPart(gather.replicas)*part, gather.replicas)
	}
}
