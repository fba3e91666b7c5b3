package steptime

import "github.com/devmap-dev/devmap/costmodel"

// replicas is one step where every GPU runs the whole model: all take the same
// time, that of the slowest device.
func (s *timing) replicas() float64 {
	on := s.replicaOn
	if s.table.Workload.Strategy.Traits().Sharded {
		on = s.sharded
	}
	slowest := 0.
	seen := make(map[costmodel.Device]bool)
	for d, device := range s.topo.Devices {
		if !seen[device] { // thousands may be alike
			seen[device] = true
			slowest = max(slowest, on(d))
		}
	}
	return slowest
}

// replicaOn is DDP's and ZeRO 1–2's step on device d.
func (s *timing) replicaOn(d int) float64 {
	w := &s.table.Workload
	var forward, both, token round
	var update float64
	var trained int64
	for u := range s.table.Units {
		t := Unit(s.table, s.topo, d, u)
		forward.run(t.Issue, t.Forward)
		token.run(t.IssueToken, t.Token)
		update += t.Update
		trained += s.table.Units[u].Work.Trained
	}
	m := s.microBatches()
	if !s.trains() {
		return forward.repeated(m) + s.tokens()*token.Device
	}
	both = forward
	for u := len(s.table.Units) - 1; u >= 0; u-- {
		t := Unit(s.table, s.topo, d, u)
		both.run(t.IssueBack, t.Backward)
	}
	stage := w.Strategy.Traits().ZeroStage
	if stage == 0 {
		return both.repeated(m) - both.Device + s.ddpBackward(d, forward.Clock) + update
	}
	// DeepSpeed reduces between kernels (overlap_comm is off by default in
	// stages 1 and 2), stage 2 after every micro-batch; each GPU updates its
	// part, and all gather the weights again.
	n := int64(len(s.topo.Devices))
	once := s.collective(ringPart(n)*float64(trained*wire(w)), n)
	reduce := once
	if stage == 2 {
		reduce *= m
	}
	return both.repeated(m) + reduce + update/float64(n) + once
}

// ddpBackward is the end of the last micro-batch, whose forward ends at clock:
// a gradient is copied to its bucket, and the bucket's all-reduce runs beside
// the kernels that follow (torch/csrc/distributed/c10d/reducer.cpp
// mark_variable_ready, finalize_backward). Units stand for buckets of 25 MiB.
func (s *timing) ddpBackward(d int, clock Clock) float64 {
	w, device := &s.table.Workload, &s.topo.Devices[d]
	n, size := int64(len(s.topo.Devices)), w.Precision.WeightBytes()
	var link, back float64
	for u := len(s.table.Units) - 1; u >= 0; u-- {
		t := Unit(s.table, s.topo, d, u)
		grads := float64(s.table.Units[u].Work.Trained * size)
		copied := over(2*grads, device.BytesPerSecond)
		clock.Run(t.IssueBack, t.Backward+copied)
		if grads > 0 {
			reduce := s.beside(2*ringPart(n)*grads, n)
			link = max(link, clock.Device) + reduce
			clock.Device += reduce * device.CollectiveShare // its processors are lost to kernels
		}
		if !w.GradientViews {
			back += copied // from the bucket to the gradient
		}
	}
	return max(clock.Device, link) + back
}
