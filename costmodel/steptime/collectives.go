package steptime

import (
	"cmp"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// wire is the size of an element of a weight as it is gathered: sharding
// engines send what they compute with (FSDP2's param_dtype, DeepSpeed's
// 16-bit weights).
func wire(w *costmodel.Workload) int64 {
	if w.Precision.Mixed() {
		return 2
	}
	return w.Precision.WeightBytes()
}

// reduced is the size of an element of a gradient as it is reduced: FSDP2
// reduces mixed precision in fp32 (MixedPrecisionPolicy(param_dtype=bf16,
// reduce_dtype=fp32), as torchtitan and Accelerate set it), DeepSpeed in the
// type of the weights.
func reduced(w *costmodel.Workload) int64 {
	if w.Precision.Mixed() && w.Runtime != costmodel.DeepSpeed {
		return 4
	}
	return wire(w)
}

// ringPart is the part of a tensor that a GPU sends in a ring's all-gather
// or reduce-scatter over n; an all-reduce is both.
func ringPart(n int64) float64 { return float64(n-1) / float64(max(1, n)) }

// collective is the time in which each of n GPUs sends so many bytes round a
// ring, as slow as its slowest link.
func (s *timing) collective(bytes float64, n int64) float64 {
	return s.ring(bytes, n, func(r *costmodel.Rates) float64 { return r.CollectiveBytesPerSecond })
}

// beside is that of a collective beside kernels, which compete with it for
// processors and memory.
func (s *timing) beside(bytes float64, n int64) float64 {
	return s.ring(bytes, n, func(r *costmodel.Rates) float64 { return cmp.Or(r.BesideBytesPerSecond, r.CollectiveBytesPerSecond) })
}

func (s *timing) ring(bytes float64, n int64, of func(*costmodel.Rates) float64) float64 {
	if n < 2 {
		return 0
	}
	rate, latency, call := math.Inf(1), 0., 0.
	for i := range s.topo.Devices {
		rate = min(rate, of(&s.topo.Devices[i].Rates))
		if s.topo.Apart(0, i) { // the ring passes between hosts
			rate = min(rate, s.topo.Devices[i].HostBytesPerSecond)
		}
		call = max(call, s.topo.Devices[i].CollectiveSeconds)
	}
	for i := range s.topo.Links {
		rate = min(rate, s.topo.Links[i].BytesPerSecond)
		latency = max(latency, s.topo.Links[i].LatencySeconds)
	}
	return over(bytes, rate) + call + float64(n-1)*latency
}
