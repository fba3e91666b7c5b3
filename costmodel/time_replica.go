package costmodel

import "math"

// replica is one step where every GPU runs the whole model: all take the same
// time, that of the slowest device.
func (s *timing) replica() float64 {
	slowest := 0.
	for d := range s.topo.Devices {
		slowest = max(slowest, s.replicaOn(d))
	}
	return slowest
}

func (s *timing) replicaOn(d int) float64 {
	w := &s.t.Workload
	if w.Strategy.Sharded() {
		return s.sharded(d)
	}
	var forward, backward, token, update float64
	var trained int64
	for u := range s.t.Units {
		work := s.work(u)
		forward += s.seconds(d, work.Forward)
		backward += s.seconds(d, work.Backward)
		token += s.seconds(d, work.Token)
		update += over(work.Update, s.topo.Devices[d].BytesPerSecond)
		trained += work.Trained
	}
	m := s.microBatches()
	if w.Mode != Train {
		return m*forward + s.tokens()*token
	}
	if w.Strategy == DDP {
		return m*forward + (m-1)*backward + s.ddpBackward(d) + update
	}
	// DeepSpeed reduces between kernels (overlap_comm is off by default in
	// stages 1 and 2), stage 2 after every micro-batch; each GPU updates its
	// part, and all gather the weights again.
	n := int64(len(s.topo.Devices))
	grads, weights := w.wire(), w.wire()
	reduce := s.collective(ringShare(n)*float64(trained*grads), n)
	if w.Strategy == Zero2 {
		reduce *= m
	}
	return m*(forward+backward) + reduce + update/float64(n) + s.collective(ringShare(n)*float64(trained*weights), n)
}

// ddpBackward is the last micro-batch's backward: a gradient is copied to its
// bucket, and the bucket's all-reduce runs beside the kernels that follow
// (torch/csrc/distributed/c10d/reducer.cpp mark_variable_ready,
// finalize_backward). Units stand for buckets of 25 MiB.
func (s *timing) ddpBackward(d int) float64 {
	w := &s.t.Workload
	n, size := int64(len(s.topo.Devices)), w.Precision.WeightBytes()
	var now, link, back float64
	for u := len(s.t.Units) - 1; u >= 0; u-- {
		work := s.work(u)
		grads := float64(work.Trained * size)
		copied := over(2*grads, s.topo.Devices[d].BytesPerSecond)
		now += s.seconds(d, work.Backward) + copied
		if grads > 0 {
			reduce := s.collective(2*ringShare(n)*grads, n)
			link = max(link, now) + reduce
			now += reduce * s.topo.Devices[d].CollectiveShare // its processors are lost to kernels
		}
		if !w.GradientViews {
			back += copied // from the bucket to the gradient
		}
	}
	return max(now, link) + back
}

// ringShare is the part of a tensor that a GPU sends in a ring's all-gather
// or reduce-scatter over n; an all-reduce is both.
func ringShare(n int64) float64 { return float64(n-1) / float64(max(1, n)) }

// collective is the time in which each of n GPUs sends so many bytes round a
// ring, as slow as its slowest link.
func (s *timing) collective(bytes float64, n int64) float64 {
	if n < 2 {
		return 0
	}
	rate, latency := math.Inf(1), 0.
	for i := range s.topo.Devices {
		rate = min(rate, s.topo.Devices[i].CollectiveBytesPerSecond)
		if s.topo.apart(0, i) { // the ring passes between hosts
			rate = min(rate, s.topo.Devices[i].HostBytesPerSecond)
		}
	}
	for i := range s.topo.Links {
		rate = min(rate, s.topo.Links[i].BytesPerSecond)
		latency = max(latency, s.topo.Links[i].LatencySeconds)
	}
	return over(bytes, rate) + float64(n-1)*latency
}
