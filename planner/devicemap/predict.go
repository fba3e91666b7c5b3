package devicemap

import (
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Predict predicts the memory of every device in a step. The map is nil if every GPU runs the whole
// model. If no engine runs the strategy, the predictions are empty and [Check] reports a fault.
func Predict(table *costmodel.Table, topo *costmodel.Topology, placement Map) []Prediction {
	return withUsual(predictAll(table, topo, placement, nil), table, topo, placement)
}

// Steps returns what every device does in a step, behind [Predict]. A device that does nothing has the
// zero step.
func Steps(table *costmodel.Table, topo *costmodel.Topology, placement Map) []timeline.Step {
	steps := make(follow)
	predictAll(table, topo, placement, steps)
	out := make([]timeline.Step, len(topo.Devices))
	for device, step := range steps {
		out[device] = step
	}
	return out
}

// follow collects the steps behind predictions, by device.
type follow map[int]timeline.Step

func (steps follow) keep(device int, step timeline.Step) {
	if steps != nil {
		steps[device] = step
	}
}

// onGPUs gives each GPU of a stage the stage's step; starts are [costmodel.Topology.Starts].
func (steps follow) onGPUs(starts []int, count int) {
	if steps == nil || starts == nil {
		return
	}
	stages := maps.Clone(steps)
	for gpu := range count {
		steps[gpu] = stages[stageOf(starts, gpu)]
	}
}

// withUsual adds the peaks of the usual micro-batch if the largest one differs.
func withUsual(out []Prediction, table *costmodel.Table, topo *costmodel.Topology, placement Map) []Prediction {
	if table.Usual == nil {
		return out
	}
	for device, usual := range predictAll(table.Usual, topo, placement, nil) {
		out[device].Predicted.UsualPeakBytes = usual.Predicted.PeakAllocatedBytes
	}
	return out
}

// predictAll is [Predict] without the usual micro-batch.
func predictAll(table *costmodel.Table, topo *costmodel.Topology, placement Map, steps follow) []Prediction {
	switch strategy := table.Workload.Strategy; {
	case strategy.Traits().Staged, mapped(strategy) && costmodel.StageRulesOf(table.Workload.Runtime).Arena:
		folded, starts := startsOf(table, topo)
		stages := stagesOf(table, placement.onStages(starts), len(folded.Devices)).predict(table, folded, steps)
		steps.onGPUs(starts, len(topo.Devices))
		return onGPUs(stages, starts, topo)
	case strategy.Traits().Replicated && placement == nil:
		devices, err := predictReplicas(table, topo, steps)
		if err == nil {
			return devices
		}
	case !mapped(strategy):
		placement = nil
	}
	out := make([]Prediction, len(topo.Devices))
	owned := make([][]*costmodel.Unit, len(topo.Devices))
	places := make([][]int, len(topo.Devices))
	main := mainDevice(table, placement)
	for unit, device := range placement {
		switch {
		case device >= 0 && int(device) < len(owned):
			owned[device] = append(owned[device], &table.Units[unit])
			places[device] = append(places[device], unit)
		case (device == CPU || device == Disk) && main >= 0 && main < len(owned):
			streamed := table.Units[unit].Streamed()
			owned[main] = append(owned[main], &streamed)
		}
	}
	for device := range out {
		out[device] = predict(table, device, &topo.Devices[device], owned[device], places[device], steps)
	}
	return out
}

// predictReplicas returns every GPU's prediction if each runs the whole model ([costmodel.Traits]).
// A strategy without replicas is an error.
func predictReplicas(table *costmodel.Table, topo *costmodel.Topology, steps follow) ([]Prediction, error) {
	out := make([]Prediction, len(topo.Devices))
	type followed struct {
		timeline.Step
		timeline.Peak
	}
	replicas := make(map[costmodel.Device]followed) // thousands of GPUs may be equal
	for device := range out {
		dev := &topo.Devices[device]
		prediction := on(device, dev)
		prediction.Units = len(table.Units)
		replica, known := replicas[*dev]
		if !known {
			step, err := timeline.Replica(table, dev)
			if err != nil {
				return nil, err
			}
			replica = followed{step, step.Peak()}
			replicas[*dev] = replica
		}
		peak := replica.Peak
		steps.keep(device, replica.Step)
		prediction.Predicted = predicted(peak, table.Overhead(device, dev), slackOf(table, dev, true))
		prediction.Predicted.follow(table, dev, nil, true)
		if table.Least != nil {
			step, err := timeline.Replica(table.Least, dev)
			if err != nil {
				return nil, err
			}
			least := step.Peak()
			if least.Memory.Total() > peak.Memory.Total() {
				prediction.Predicted = predicted(least, table.Overhead(device, dev), slackOf(table, dev, true))
				steps.keep(device, step)
			}
			prediction.Predicted.PeakRangeBytes = []int64{least.Memory.Total(), prediction.Predicted.PeakAllocatedBytes + table.SecondBuckets}
		} else if table.SecondBuckets > 0 {
			prediction.Predicted.PeakRangeBytes = []int64{prediction.Predicted.PeakAllocatedBytes, prediction.Predicted.PeakAllocatedBytes + table.SecondBuckets}
		}
		prediction.Predicted.widen(table)
		prediction.pool(table.Pool)
		prediction.settle()
		out[device] = prediction
	}
	return out, nil
}

// mapped reports a strategy that runs a device map in sequence, the default of estimate.Resolve
// included.
func mapped(strategy costmodel.Strategy) bool { return strategy == "" || strategy.Traits().Sequential }

// predict returns a device's prediction. places are the indices of the units that are always on the
// device.
func predict(table *costmodel.Table, device int, dev *costmodel.Device, units []*costmodel.Unit, places []int, steps follow) Prediction {
	prediction := on(device, dev)
	prediction.Units = len(units)
	resident := timeline.ResidentOn(table, device, dev, len(units) == 0)
	if len(units) > 0 || resident.Output > 0 {
		if table.Part != nil && len(places) == len(units) {
			units = unitsOf(table.Part(places, true))
		}
		step := timeline.DeviceMap(table.Workload.Mode, units, resident)
		steps.keep(device, step)
		prediction.Predicted = predicted(step.Peak(), table.Overhead(device, dev), slackOf(table, dev, resident.Output > 0 || endsModel(units)))
		if len(places) > 0 && len(places) == len(units) { // the allocator is not simulated with offloaded weights
			prediction.Predicted.follow(table, dev, places, device == table.InputDevice)
		}
		prediction.Predicted.widen(table)
	}
	prediction.settle()
	return prediction
}

func unitsOf(units []costmodel.Unit) (out []*costmodel.Unit) {
	for i := range units {
		out = append(out, &units[i])
	}
	return out
}

// endsModel reports that a device computes the loss or the logits.
func endsModel(units []*costmodel.Unit) bool {
	return slices.ContainsFunc(units, func(unit *costmodel.Unit) bool {
		return slices.ContainsFunc(unit.Layers, func(memory costmodel.LayerMemory) bool { return memory.Loss || memory.HeadPeak > 0 && memory.KV == 0 })
	})
}

// mainDevice returns the device that runs offloaded units: the first one with a unit (Accelerate
// 1.15, big_modeling.py, dispatch_model). It returns -1 if no device has a unit, and in training,
// which Accelerate does not offload.
func mainDevice(table *costmodel.Table, placement Map) int {
	out := -1
	for _, device := range placement {
		if device >= 0 && (out < 0 || int(device) < out) {
			out = int(device)
		}
	}
	if table.Workload.Mode == costmodel.Train {
		return -1
	}
	return out
}

// StepSeconds returns [steptime.Step] for a map, or nil if the time is unknown. The map is nil if
// every GPU runs the whole model.
func StepSeconds(table *costmodel.Table, topo *costmodel.Topology, placement Map) *float64 {
	seconds, err := steptime.Step(table, topo, placement.places())
	if err != nil {
		return nil
	}
	return &seconds
}

// slackOf returns the range of the pool beyond the peak on a device: the topology's if it gives
// one, else the table's.
func slackOf(table *costmodel.Table, dev *costmodel.Device, head bool) [2]float64 {
	switch {
	case dev.Slack != [2]float64{}:
		return dev.Slack
	case head:
		return table.HeadSlack
	}
	return table.BodySlack
}
