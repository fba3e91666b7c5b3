package devicemap

import (
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
)

// startsOf returns the topology by stages, and the first GPU of each; nil if each device is one
// GPU, or a stage already.
func startsOf(table *costmodel.Table, topo *costmodel.Topology) (folded *costmodel.Topology, starts []int) {
	if folded = table.Folded(topo); folded == topo {
		return topo, nil
	}
	return folded, folded.Starts
}

// onStages converts a map of GPUs to stages if stages have several GPUs. Any GPU of a stage stands
// for the stage; a map names its first. starts are [costmodel.Topology.Starts].
func (placement Map) onStages(starts []int) Map {
	if starts == nil {
		return placement
	}
	out := make(Map, len(placement))
	for unit, device := range placement {
		out[unit] = device
		if device >= 0 {
			out[unit] = Device(stageOf(starts, int(device)))
		}
	}
	return out
}

// stageOf returns the stage of a GPU.
func stageOf(starts []int, gpu int) int { return sort.SearchInts(starts, gpu+1) - 1 }

// tableOf returns the table of a stage, with the list of all stages.
func tableOf(table *costmodel.Table, stage int) *costmodel.Table {
	if stage < len(table.Stages) {
		of := *table.Stages[stage]
		of.Stages = table.Stages
		return &of
	}
	return table
}

// onGPUs gives each GPU of a stage the stage's prediction.
func onGPUs(stages []Prediction, starts []int, topo *costmodel.Topology) []Prediction {
	if starts == nil {
		return stages
	}
	out := make([]Prediction, len(topo.Devices))
	for gpu := range out {
		stage := stageOf(starts, gpu)
		one := on(gpu, &topo.Devices[gpu])
		one.Predicted, one.Units = stages[stage].Predicted, stages[stage].Units
		one.settle()
		out[gpu] = one
	}
	return out
}

// notFirst reports units on a GPU that is not the first of its stage.
func (check *checker) notFirst(starts []int) {
	if starts == nil {
		return
	}
	for unit, device := range check.placement {
		if device < 0 || int(device) >= check.devices {
			continue
		}
		if first := starts[stageOf(starts, int(device))]; int(device) != first {
			check.fault(unknownDevice, check.graph.Units[unit].Name, "device %d is within a stage of several GPUs: a map names the first of them, %d", device, first)
		}
	}
}

// gpu returns the first GPU of a stage's device, as users number GPUs.
func (pipe *pipeline) gpu(device int) int {
	if pipe.starts == nil {
		return device
	}
	return pipe.starts[device]
}

// spread fills in the GPUs of a stage, and its degrees.
func (stage *Stage) spread(table *costmodel.Table, starts []int, device int) {
	if starts == nil || device < 0 {
		return
	}
	at := stageOf(starts, device)
	of := &tableOf(table, at).Workload
	count := int(of.DP.Count() * of.TP.Count() * of.CP.Count())
	for gpu := range count {
		stage.Devices = append(stage.Devices, starts[at]+gpu)
	}
	if count == 1 {
		stage.Devices = nil
	}
	if of.DP.Count() > 1 {
		stage.DP = of.DP.Count()
	}
	if of.TP.Count() > 1 {
		stage.TP = of.TP.Count()
	}
	if len(table.Stages) > 0 && of.Recompute != costmodel.RecomputeNone {
		stage.Recompute = of.Recompute
	}
}
