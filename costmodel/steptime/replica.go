package steptime

import (
	"cmp"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// replica is one step where every GPU runs the whole model: all take the same
// time, that of the slowest device.
func (s *timing) replica() float64 {
	slowest := 0.
	seen := make(map[costmodel.Device]bool)
	for d, dev := range s.topo.Devices {
		if !seen[dev] { // thousands may be alike
			seen[dev] = true
			slowest = max(slowest, s.replicaOn(d))
		}
	}
	return slowest
}

func (s *timing) replicaOn(d int) float64 {
	w := &s.t.Workload
	if w.Strategy.Traits().Sharded {
		return s.sharded(d)
	}
	var forward, both, token clock
	var update float64
	var trained int64
	for u := range s.t.Units {
		work := s.work(u)
		forward.run(s.issue(d, work.Forward), s.seconds(d, work.Forward))
		token.run(s.issue(d, work.Token), s.seconds(d, work.Token))
		update += s.updates(d, work.Update)
		trained += work.Trained
	}
	m := s.microBatches()
	if w.Mode != costmodel.Train {
		return forward.times(m) + s.tokens()*token.device
	}
	both = forward
	for u := len(s.t.Units) - 1; u >= 0; u-- {
		p := s.work(u).Backward
		both.run(s.issueBack(d, p), s.seconds(d, p))
	}
	if w.Strategy.Traits().ZeroStage == 0 {
		return both.times(m) - both.device + s.ddpBackward(d, forward) + update
	}
	// DeepSpeed reduces between kernels (overlap_comm is off by default in
	// stages 1 and 2), stage 2 after every micro-batch; each GPU updates its
	// part, and all gather the weights again.
	n := int64(len(s.topo.Devices))
	grads, weights := wire(w), wire(w)
	reduce := s.collective(ringShare(n)*float64(trained*grads), n)
	if w.Strategy.Traits().ZeroStage == 2 {
		reduce *= m
	}
	return both.times(m) + reduce + update/float64(n) + s.collective(ringShare(n)*float64(trained*weights), n)
}

// ddpBackward is the end of the last micro-batch, whose forward ends at c: a gradient is copied to its
// bucket, and the bucket's all-reduce runs beside the kernels that follow
// (torch/csrc/distributed/c10d/reducer.cpp mark_variable_ready,
// finalize_backward). Units stand for buckets of 25 MiB.
func (s *timing) ddpBackward(d int, c clock) float64 {
	w := &s.t.Workload
	n, size := int64(len(s.topo.Devices)), w.Precision.WeightBytes()
	var link, back float64
	for u := len(s.t.Units) - 1; u >= 0; u-- {
		work := s.work(u)
		grads := float64(work.Trained * size)
		copied := over(2*grads, s.topo.Devices[d].BytesPerSecond)
		c.run(s.issueBack(d, work.Backward), s.seconds(d, work.Backward)+copied)
		if grads > 0 {
			reduce := s.beside(2*ringShare(n)*grads, n)
			link = max(link, c.device) + reduce
			c.device += reduce * s.topo.Devices[d].CollectiveShare // its processors are lost to kernels
		}
		if !w.GradientViews {
			back += copied // from the bucket to the gradient
		}
	}
	return max(c.device, link) + back
}

// ringShare is the part of a tensor that a GPU sends in a ring's all-gather
// or reduce-scatter over n; an all-reduce is both.
func ringShare(n int64) float64 { return float64(n-1) / float64(max(1, n)) }

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
