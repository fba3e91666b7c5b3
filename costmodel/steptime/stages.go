package steptime

import (
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// folded are a topology and places by stages, if a stage has several GPUs ([costmodel.Table.Folded]).
func folded(table *costmodel.Table, topo *costmodel.Topology, place []int) (*costmodel.Topology, []int) {
	stages := table.Folded(topo)
	if stages == topo || place == nil {
		return topo, place
	}
	out := make([]int, len(place))
	for unit, device := range place {
		out[unit] = device
		if device >= 0 {
			out[unit] = sort.SearchInts(stages.Starts, device+1) - 1
		}
	}
	return stages, out
}

// stageTable is the table of a stage.
func stageTable(table *costmodel.Table, stage int) *costmodel.Table {
	if stage < len(table.Stages) {
		return table.Stages[stage]
	}
	return table
}

// of is the table of what runs on a device.
func (step *timing) of(device int) *costmodel.Table { return stageTable(step.table, device) }

// message is the bytes on the busiest GPU's port if a stage sends the output of a unit. Each GPU of
// the next stage receives the input of its replica. The GPUs of this stage share the sending.
func message(from, to *costmodel.Table, unit int) int64 {
	gpus := func(table *costmodel.Table) int64 {
		return table.Workload.DP.Count() * table.Workload.TP.Count() * table.Workload.CP.Count()
	}
	received := to.Units[unit].Work.Output
	return max(received, received*gpus(to)/gpus(from))
}

// stage adds the communication of a stage's GPUs: sums of tensor parallelism, between a unit's
// kernels, and exchanges of replicas.
func (seconds *UnitSeconds) stage(table *costmodel.Table, stage *costmodel.Device, work *costmodel.Work) {
	if tensor := table.Workload.TP.Count(); tensor > 1 {
		sums := func(pass *costmodel.Pass) float64 {
			return over(2*ringPart(tensor)*pass.Reduced, stage.Tensor.BytesPerSecond) + pass.Reductions*stage.Tensor.Seconds
		}
		seconds.Forward += sums(&work.Forward)
		seconds.Backward += sums(&work.Backward)
	}
	others := func(pass *costmodel.Pass) float64 {
		return over(pass.Shared, stage.Context.BytesPerSecond) + over(pass.Dispatched, stage.Expert.BytesPerSecond)
	}
	seconds.Forward += others(&work.Forward)
	seconds.Backward += others(&work.Backward)
	if degree := shards(table); degree > 1 {
		seconds.Update /= float64(degree)
	}
	seconds.exchange(table, stage, work)
}

// exchange adds the time of a unit's replicas to send. Pipelines gather its parameters in the first
// forward, and reduce its gradients after the last backward. Few kernels of the stage overlap
// these, so none is counted. Without a pipeline torchtitan (0.3, trainer.py, train_step) does both
// in every micro-batch, while the unit before runs.
func (seconds *UnitSeconds) exchange(table *costmodel.Table, stage *costmodel.Device, work *costmodel.Work) {
	workload := &table.Workload
	if replicas(workload) == 1 || work.Weights == 0 || workload.Mode != costmodel.Train {
		return
	}
	gathered, reduced := exchanged(table, work)
	rate, call := stage.Data.BytesPerSecond, stage.Data.Seconds
	gathering := 0.
	if shards(table) > 1 {
		gathering = over(gathered, rate) + call
	}
	reducing := over(reduced, rate) + call
	if !unpiped(workload) {
		seconds.Update += gathering + reducing
		return
	}
	seconds.Forward = max(seconds.Forward, gathering)
	if !work.Block { // its parameters stay
		gathering = 0
	}
	seconds.Backward = max(seconds.Backward, gathering+reducing)
}

// unpiped reports torchtitan's stage that is the whole model, which is FSDP2 alone.
func unpiped(workload *costmodel.Workload) bool {
	return workload.Runtime == value.Torchtitan && workload.PP.Count() == 1
}

// exchanged is the bytes that a GPU sends to the other replicas of its unit: of
// parameters gathered once, and of gradients reduced once.
func exchanged(table *costmodel.Table, work *costmodel.Work) (gathered, reduced float64) {
	degree, each := shards(table), ops.WeightBytes(table.Workload.Precision)
	weights, grads := float64(work.Weights*each), float64(work.Trained*each)
	if table.Workload.Runtime == value.Torchtitan { // MixedPrecisionPolicy gathers in the type of compute
		weights = float64(work.Weights * wire(&table.Workload))
	}
	groups := replicas(&table.Workload) / degree
	return ringPart(degree) * weights, ringPart(degree)*grads + 2*ringPart(groups)*grads/float64(degree)
}

// replicas are the GPUs of a stage that add up their gradients of the same parts.
func replicas(workload *costmodel.Workload) int64 { return workload.DP.Count() * workload.CP.Count() }

// shards is over how many GPUs a stage's states are cut.
func shards(table *costmodel.Table) int64 {
	if workload := &table.Workload; workload.Strategy.Traits().Staged && replicas(workload) > 1 {
		return max(1, workload.ShardDegree)
	}
	return 1
}

// within is the bytes that a GPU sends to others of its stage for a unit, in a step.
func within(table *costmodel.Table, unit int) float64 {
	work := &table.Units[unit].Work
	tensor, batches := table.Workload.TP.Count(), float64(max(1, table.Workload.MicroBatches))
	bytes := batches * (2*ringPart(tensor)*(work.Forward.Reduced+work.Backward.Reduced) + work.Forward.Shared + work.Forward.Dispatched + work.Backward.Shared + work.Backward.Dispatched)
	if table.Workload.Mode == costmodel.Train && replicas(&table.Workload) > 1 {
		gathered, reduced := exchanged(table, work)
		if unpiped(&table.Workload) {
			reduced *= batches
			gathered *= batches
			if work.Block { // and again in backward
				gathered *= 2
			}
		}
		bytes += gathered + reduced
	}
	return bytes
}
