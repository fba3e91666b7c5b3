package steptime

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// replicas is one step if every GPU runs the whole model: the time of the slowest device.
func (step *timing) replicas() float64 {
	on := step.dataParallel
	if step.table.Workload.Strategy.Traits().Sharded {
		on = step.sharded
	}
	slowest := 0.
	seen := make(map[costmodel.Device]bool)
	for deviceIndex, device := range step.topo.Devices {
		if !seen[device] { // thousands may be equal
			seen[device] = true
			slowest = max(slowest, on(deviceIndex))
		}
	}
	return slowest
}

// dataParallel is DDP's and ZeRO 1–2's step on device.
func (step *timing) dataParallel(device int) float64 {
	workload := &step.table.Workload
	var forward, both, token round
	var update float64
	var trained int64
	for unit := range step.table.Units {
		seconds, start := Unit(step.table, step.topo, device, unit), forward.Device
		forward.pass(seconds.Issue, seconds.Forward)
		step.record.add(Span{device, streamCompute, doesForward, unit, unit + 1, 0, start, forward.Device})
		token.pass(seconds.IssueToken, seconds.Token)
		update += seconds.Update
		trained += step.table.Units[unit].Work.Trained
	}
	if !step.trains() {
		end := step.rounds(&forward)
		whole := end + step.tokens()*token.Device
		step.record.add(Span{device, streamCompute, doesDecode, 0, 0, -1, end, whole})
		return whole
	}
	both = forward
	for unit := len(step.table.Units) - 1; unit >= 0; unit-- {
		seconds, start := Unit(step.table, step.topo, device, unit), both.Device
		both.pass(seconds.IssueBack, seconds.Backward)
		step.record.add(Span{device, streamCompute, doesBackward, unit, unit + 1, 0, start, both.Device})
	}
	end := step.rounds(&both)
	stage := workload.Strategy.Traits().ZeroStage
	if stage == 0 {
		whole := end - both.Device + step.ddpBackward(device, forward.deviceClock) + update
		step.recordRest(device, end, whole, update)
		return whole
	}
	// DeepSpeed reduces between kernels (overlap_comm is off by default in stages 1 and 2), stage 2
	// after every micro-batch. Each GPU updates its shard, and all gather the weights again.
	gpus := int64(len(step.topo.Devices))
	once := step.collective(ringPart(gpus)*float64(trained*wire(workload)), gpus)
	reduce := once
	if stage == 2 {
		reduce *= step.microBatches()
	}
	update /= float64(gpus)
	whole := end + reduce + update + once
	step.recordRest(device, end, whole, update)
	return whole
}

// recordRest records what follows the passes of a step: communication that nothing hides, and the update.
func (step *timing) recordRest(device int, end, whole, update float64) {
	step.record.add(Span{device, streamCollectives, doesReduce, 0, 0, -1, end, whole - update})
	step.record.add(Span{device, streamCompute, doesUpdate, 0, 0, -1, whole - update, whole})
}

// ddpBackward is the end of the last micro-batch; its forward ends at clock. Gradients are copied to
// buckets, which are all-reduced while later kernels run (torch/csrc/distributed/c10d/reducer.cpp
// mark_variable_ready, finalize_backward). Units represent buckets of 25 MiB.
func (step *timing) ddpBackward(deviceIndex int, clock deviceClock) float64 {
	workload, device := &step.table.Workload, &step.topo.Devices[deviceIndex]
	gpus, size := int64(len(step.topo.Devices)), ops.WeightBytes(workload.Precision)
	var link, back float64
	for unit := len(step.table.Units) - 1; unit >= 0; unit-- {
		seconds := Unit(step.table, step.topo, deviceIndex, unit)
		grads := float64(step.table.Units[unit].Work.Trained * size)
		copied := over(2*grads, device.BytesPerSecond)
		clock.run(seconds.IssueBack, seconds.Backward+copied)
		if grads > 0 {
			reduce := step.overlapped(2*ringPart(gpus)*grads, gpus)
			link = max(link, clock.Device) + reduce
			clock.Device += reduce * device.CollectiveShare // its processors are lost to kernels
		}
		if !workload.GradientViews {
			back += copied // from the bucket to the gradient
		}
	}
	return max(clock.Device, link) + back
}
