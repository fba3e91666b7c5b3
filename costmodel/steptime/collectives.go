package steptime

import (
	"cmp"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
)

// wire is the size of a gathered weight's element: sharding engines send the type of compute
// (FSDP2's param_dtype, DeepSpeed's 16-bit weights).
func wire(workload *costmodel.Workload) int64 {
	if ops.MixedPrecision(workload.Precision) {
		return 2
	}
	return ops.WeightBytes(workload.Precision)
}

// reduced is the size of a reduced gradient's element. FSDP2 reduces mixed precision in fp32, as
// torchtitan sets it (MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=fp32)). Some presets
// reduce in the type of compute; DeepSpeed in the type of the weights.
func reduced(workload *costmodel.Workload) int64 {
	if trainer.Of(workload.Preset).Path.ReduceAsComputed {
		return wire(workload)
	}
	if ops.MixedPrecision(workload.Precision) && workload.Strategy.Traits().ByBlock {
		return 4
	}
	return wire(workload)
}

// ringPart is the part of a tensor that a GPU sends in a ring's all-gather
// or reduce-scatter over so many; an all-reduce is both.
func ringPart(gpus int64) float64 { return float64(gpus-1) / float64(max(1, gpus)) }

// collective is the time of each GPU to send bytes round a ring, as slow as its slowest link.
func (step *timing) collective(bytes float64, gpus int64) float64 {
	return step.ring(bytes, gpus, func(rates *costmodel.Rates) float64 { return rates.CollectiveBytesPerSecond })
}

// overlapped is the time of a collective while kernels compete for processors and memory.
func (step *timing) overlapped(bytes float64, gpus int64) float64 {
	return step.ring(bytes, gpus, func(rates *costmodel.Rates) float64 {
		return cmp.Or(rates.OverlappedBytesPerSecond, rates.CollectiveBytesPerSecond)
	})
}

func (step *timing) ring(bytes float64, gpus int64, of func(*costmodel.Rates) float64) float64 {
	if gpus < 2 {
		return 0
	}
	rate, latency, call := math.Inf(1), 0., 0.
	for i := range step.topo.Devices {
		rate = min(rate, of(&step.topo.Devices[i].Rates))
		if first, device := &step.topo.Devices[0], &step.topo.Devices[i]; device.Host != first.Host && min(first.HostBytesPerSecond, device.HostBytesPerSecond) > 0 {
			rate = min(rate, device.HostBytesPerSecond) // the ring passes between hosts, at their known rates
		}
		call = max(call, step.topo.Devices[i].CollectiveSeconds)
	}
	for i := range step.topo.Links {
		rate = min(rate, step.topo.Links[i].BytesPerSecond)
		latency = max(latency, step.topo.Links[i].LatencySeconds)
	}
	return over(bytes, rate) + call + float64(gpus-1)*latency
}
