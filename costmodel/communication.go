package costmodel

// wire is the size of an element of a weight as it is gathered: sharding
// engines send what they compute with (FSDP2's param_dtype, DeepSpeed's
// 16-bit weights).
func (w *Workload) wire() int64 {
	if w.Precision.Mixed() {
		return 2
	}
	return w.Precision.WeightBytes()
}

// reduced is the size of an element of a gradient as it is reduced: FSDP2
// reduces mixed precision in fp32 (MixedPrecisionPolicy reduce_dtype as
// DESIGN's tables have it), DeepSpeed in the type of the weights.
func (w *Workload) reduced() int64 {
	if w.Precision.Mixed() && w.Runtime != DeepSpeed {
		return 4
	}
	return w.wire()
}

// Communication is the bytes that the busiest GPU sends to others in a step.
// place[u] is the device of unit u, nil where every GPU runs the whole model.
// With Ψ the bytes of all parameters (ZeRO, arXiv 1910.02054, section 7):
// DDP and ZeRO 1–2 send 2(n−1)/n·Ψ, ZeRO-3 and FSDP 3(n−1)/n·Ψ, a forward
// alone (n−1)/n·Ψ, and HSDP that over a group, with an all-reduce of each
// part between the groups.
func (t *Table) Communication(topo *Topology, place []int) int64 {
	n := int64(len(topo.Devices))
	if t.Workload.Mode == Load || n < 2 {
		return 0
	}
	if place != nil {
		return t.crossing(topo, place)
	}
	w := &t.Workload
	var weights, blocks, trained int64
	for u := range t.Units {
		work := &t.Units[u].Work
		weights += work.Weights
		trained += work.Trained
		if work.Block {
			blocks += work.Weights
		}
	}
	m := max(1, w.MicroBatches)
	if w.Strategy.Sharded() {
		passes := float64(weights * w.wire())
		degree := min(n, max(1, w.ShardDegree))
		bytes := ringShare(degree) * passes * float64(m+w.NewTokens)
		if w.Mode == Train {
			// Gathered again for backward (the root stays gathered under
			// FSDP2), and reduced.
			again := blocks
			if w.Runtime == DeepSpeed {
				again = weights
			}
			bytes += float64(m) * ringShare(degree) * float64(again*w.wire()+trained*w.reduced())
			bytes += float64(m) * 2 * ringShare(n/degree) * float64(trained*w.reduced()) / float64(degree)
		}
		return int64(bytes)
	}
	if w.Mode != Train {
		return 0 // each GPU serves its own requests
	}
	grads := w.Precision.WeightBytes()
	if w.Strategy != DDP {
		grads = w.wire()
	}
	reduce := ringShare(n) * float64(trained*grads)
	switch w.Strategy {
	case Zero1:
		return int64(reduce + ringShare(n)*float64(trained*w.wire()))
	case Zero2: // stage 2 keeps a part of the gradients, so it reduces every micro-batch
		return int64(float64(m)*reduce + ringShare(n)*float64(trained*w.wire()))
	}
	return int64(2 * reduce)
}

// crossing is what the busiest device of a placement sends: outputs of units
// to the next, their gradients back, and the model's outputs to the input's
// device.
func (t *Table) crossing(topo *Topology, place []int) int64 {
	w := &t.Workload
	sent := make([]int64, len(topo.Devices))
	m := max(1, w.MicroBatches)
	for u := 1; u < len(place); u++ {
		a, b := place[u-1], place[u]
		if a == b || a < 0 || b < 0 {
			continue
		}
		output := t.Units[u-1].Work.Output
		bytes := m * output
		if w.Seq > 0 {
			bytes += w.NewTokens * m * output / w.Seq
		}
		sent[a] += bytes
		if w.Mode == Train {
			sent[b] += bytes
		}
	}
	if last := len(place) - 1; last >= 0 && place[last] >= 0 && place[last] != t.InputDevice {
		sent[place[last]] += m * t.OutputBytes
	}
	var most int64
	for _, b := range sent {
		most = max(most, b)
	}
	return most
}
