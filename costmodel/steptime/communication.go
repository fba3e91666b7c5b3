package steptime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// whole is a number of bytes, cut off at the largest int64.
func whole(bytes float64) int64 {
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// Communication is the bytes that the busiest GPU sends to others in a step. place[u] is unit u's
// device; nil if every GPU runs the whole model. It is 0 in load mode. Ψ are the bytes of all
// parameters, and r = (n−1)/n (ZeRO, arXiv 1910.02054, section 7):
//   - DDP and ZeRO 1–2 send 2r·Ψ, ZeRO-3 3r·Ψ, a forward alone r·Ψ.
//   - FSDP sends as much as ZeRO-3 without the root's second gathering.
//   - HSDP does so within a group, with an all-reduce of each shard between groups.
func Communication(table *costmodel.Table, topo *costmodel.Topology, place []int) int64 {
	topo, place = folded(table, topo, place)
	gpus := int64(len(topo.Devices))
	if table.Workload.Mode == costmodel.Load || gpus < 2 && topo.Starts == nil {
		return 0
	}
	if place != nil {
		return crossing(table, topo, place)
	}
	if table.Workload.Strategy.Traits().Sharded {
		return whole(gathering(table, gpus))
	}
	return whole(reducing(table, gpus))
}

// gathering is FSDP's, HSDP's and ZeRO-3's bytes for all micro-batches. Forward and backward gather
// parameters (FSDP2's root stays gathered), and backward reduces gradients.
func gathering(table *costmodel.Table, gpus int64) float64 {
	workload := &table.Workload
	var weights, again, trained int64
	for unit := range table.Units {
		work := &table.Units[unit].Work
		weights += work.Weights
		trained += work.Trained
		if work.Block || !workload.Strategy.Traits().ByBlock {
			again += work.Weights
		}
	}
	microBatches := max(1, workload.MicroBatches)
	degree := min(gpus, max(1, workload.ShardDegree))
	bytes := ringPart(degree) * float64(microBatches+workload.NewTokens) * float64(weights*wire(workload))
	if workload.Mode == costmodel.Train {
		grads := float64(trained * reduced(workload))
		bytes += float64(microBatches) * ringPart(degree) * (float64(again*wire(workload)) + grads)
		bytes += float64(microBatches) * 2 * ringPart(gpus/degree) * grads / float64(degree)
	}
	return bytes
}

// reducing is DDP's and ZeRO 1–2's. In inference each GPU serves its own requests.
func reducing(table *costmodel.Table, gpus int64) float64 {
	workload := &table.Workload
	if workload.Mode != costmodel.Train {
		return 0
	}
	var trained int64
	for unit := range table.Units {
		trained += table.Units[unit].Work.Trained
	}
	if workload.Strategy.Traits().ZeroStage == 0 {
		return 2 * ringPart(gpus) * float64(trained*ops.WeightBytes(workload.Precision))
	}
	part := ringPart(gpus) * float64(trained*wire(workload))
	reductions := int64(1)
	if workload.Strategy.Traits().ZeroStage == 2 { // it keeps a part of the gradients, so it reduces every micro-batch
		reductions = max(1, workload.MicroBatches)
	}
	return float64(reductions)*part + part // and the weights gathered
}

// crossing is the busiest device's bytes under a placement: outputs of units to the next, their
// gradients back, and the model's outputs to the input's device.
func crossing(table *costmodel.Table, topo *costmodel.Topology, place []int) int64 {
	workload := &table.Workload
	sent := make([]float64, len(topo.Devices)) // whole numbers, which may be past an int64
	microBatches := float64(max(1, workload.MicroBatches))
	for unit := 1; unit < len(place); unit++ {
		a, b := place[unit-1], place[unit]
		if a == b || a < 0 || b < 0 {
			continue
		}
		output := float64(table.Units[unit-1].Work.Output)
		bytes := microBatches * output
		if workload.Seq > 0 {
			bytes += math.Floor(float64(workload.NewTokens) * microBatches * output / float64(workload.Seq))
		}
		sent[a] += bytes
		if workload.Mode == costmodel.Train {
			sent[b] += bytes
		}
	}
	for unit, device := range place {
		if topo.Starts != nil && device >= 0 {
			sent[device] += within(stageTable(table, device), unit)
		}
	}
	if last := len(place) - 1; last >= 0 && place[last] >= 0 && place[last] != table.InputDevice && topo.Starts == nil {
		sent[place[last]] += microBatches * float64(table.OutputBytes)
	}
	return whole(slices.Max(sent))
}
