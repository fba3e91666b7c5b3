package steptime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// whole is a number of bytes, cut off at the largest int64.
func whole(bytes float64) int64 {
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// Communication is the bytes that the busiest GPU sends to others in a step.
// place[u] is the device of unit u, nil where every GPU runs the whole model.
// With Ψ the bytes of all parameters (ZeRO, arXiv 1910.02054, section 7):
// DDP and ZeRO 1–2 send 2(n−1)/n·Ψ, ZeRO-3 3(n−1)/n·Ψ and FSDP that less the
// root's second gathering, a forward alone (n−1)/n·Ψ, and HSDP that over a
// group, with an all-reduce of each part between the groups. It is 0 in load
// mode.
func Communication(table *costmodel.Table, topo *costmodel.Topology, place []int) int64 {
	n := int64(len(topo.Devices))
	if table.Workload.Mode == costmodel.Load || n < 2 {
		return 0
	}
	if place != nil {
		return crossing(table, topo, place)
	}
	if table.Workload.Strategy.Traits().Sharded {
		return whole(gathering(table, n))
	}
	return whole(reducing(table, n))
}

// gathering is FSDP's, HSDP's and ZeRO-3's: parameters gathered for forward
// and again for backward, where FSDP2's root is still gathered, and gradients
// reduced, for every micro-batch.
func gathering(table *costmodel.Table, n int64) float64 {
	w := &table.Workload
	var weights, again, trained int64
	for u := range table.Units {
		work := &table.Units[u].Work
		weights += work.Weights
		trained += work.Trained
		if work.Block || w.Runtime == costmodel.DeepSpeed {
			again += work.Weights
		}
	}
	m := max(1, w.MicroBatches)
	degree := min(n, max(1, w.ShardDegree))
	bytes := ringPart(degree) * float64(m+w.NewTokens) * float64(weights*wire(w))
	if w.Mode == costmodel.Train {
		grads := float64(trained * reduced(w))
		bytes += float64(m) * ringPart(degree) * (float64(again*wire(w)) + grads)
		bytes += float64(m) * 2 * ringPart(n/degree) * grads / float64(degree)
	}
	return bytes
}

// reducing is DDP's and ZeRO 1–2's. In inference each GPU serves its own
// requests.
func reducing(table *costmodel.Table, n int64) float64 {
	w := &table.Workload
	if w.Mode != costmodel.Train {
		return 0
	}
	var trained int64
	for u := range table.Units {
		trained += table.Units[u].Work.Trained
	}
	if w.Strategy.Traits().ZeroStage == 0 {
		return 2 * ringPart(n) * float64(trained*w.Precision.WeightBytes())
	}
	part := ringPart(n) * float64(trained*wire(w))
	reductions := int64(1)
	if w.Strategy.Traits().ZeroStage == 2 { // it keeps a part of the gradients, so it reduces every micro-batch
		reductions = max(1, w.MicroBatches)
	}
	return float64(reductions)*part + part // and the weights gathered
}

// crossing is what the busiest device of a placement sends: outputs of units
// to the next, their gradients back, and the model's outputs to the input's
// device.
func crossing(table *costmodel.Table, topo *costmodel.Topology, place []int) int64 {
	w := &table.Workload
	sent := make([]float64, len(topo.Devices)) // whole numbers, which may be past an int64
	m := float64(max(1, w.MicroBatches))
	for u := 1; u < len(place); u++ {
		a, b := place[u-1], place[u]
		if a == b || a < 0 || b < 0 {
			continue
		}
		output := float64(table.Units[u-1].Work.Output)
		bytes := m * output
		if w.Seq > 0 {
			bytes += math.Floor(float64(w.NewTokens) * m * output / float64(w.Seq))
		}
		sent[a] += bytes
		if w.Mode == costmodel.Train {
			sent[b] += bytes
		}
	}
	if last := len(place) - 1; last >= 0 && place[last] >= 0 && place[last] != table.InputDevice {
		sent[place[last]] += m * float64(table.OutputBytes)
	}
	return whole(slices.Max(sent))
}
