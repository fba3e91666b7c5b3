package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// timing is a table on a topology, with its units' places.
type timing struct {
	table *costmodel.Table
	topo  *costmodel.Topology
	// place is the device of each unit; units on a tier run on the first device that holds any.
	place []int
	// copied are the seconds in which each unit's parameters come from a tier.
	copied []float64
	record *recorder // nil: nothing is recorded
}

// newTiming checks the inputs of a step's time. Units on a tier get the first device with units,
// and the time to copy their parameters there in each forward.
func newTiming(table *costmodel.Table, topo *costmodel.Topology, place []int) (*timing, error) {
	if err := Check(table, topo); err != nil {
		return nil, err
	}
	topo, place = folded(table, topo, place)
	step := &timing{table: table, topo: topo, place: slices.Clone(place), copied: make([]float64, len(place))}
	main := -1
	for unit, device := range place {
		if device < onDisk || device >= len(topo.Devices) {
			return nil, errorf("unit %d is on device %d of %d", unit, device, len(topo.Devices))
		}
		if device >= 0 && (main < 0 || device < main) {
			main = device
		}
	}
	for unit, device := range place {
		if device >= 0 {
			continue
		}
		if workload := &table.Workload; main < 0 || workload.Mode == costmodel.Train || !workload.Strategy.Traits().Sequential {
			return nil, errorf("unit %d left the devices, which infer under %s does where others stay", unit, costmodel.DeviceMap)
		}
		rate := copyRate(&topo.Devices[main], device)
		if rate <= 0 {
			return nil, errorf("unit %d left device %d, to which the rate of copies is not known", unit, main)
		}
		step.place[unit], step.copied[unit] = main, float64(table.Units[unit].Params)/rate
	}
	return step, nil
}

// copyRate is how fast a device copies from a tier, in bytes a second.
func copyRate(device *costmodel.Device, tier int) float64 {
	if tier == onDisk {
		return device.DiskBytesPerSecond
	}
	return device.CPUBytesPerSecond
}

// unit is the time of a unit.
func (step *timing) unit(unit, device int) UnitSeconds {
	out := Unit(step.of(device), step.topo, device, unit)
	out.Copied = step.copied[unit]
	return out
}

// send is the time of a unit's output, or of its gradient, between devices; 0 on one.
func (step *timing) send(unit, from, to int) float64 {
	if from == to {
		return 0
	}
	return step.topo.SendSeconds(from, to, message(step.of(from), step.of(to), unit))
}

func (step *timing) trains() bool { return step.table.Workload.Mode == costmodel.Train }

// microBatches is how often a unit runs forward and backward in a step.
func (step *timing) microBatches() float64 { return float64(max(1, step.table.Workload.MicroBatches)) }

// rounds is the end of a step's micro-batches. The first one is recorded; rounds records the others.
func (step *timing) rounds(first *round) (end float64) {
	step.record.repeat(0, max(first.Host, first.worked), int64(step.microBatches())-1)
	return first.repeated(step.microBatches())
}

// tokens is how many tokens are generated after the first.
func (step *timing) tokens() float64 { return float64(step.table.Workload.NewTokens) }

// onDisk is the place of units on disk; −1 is host memory, and devices begin at 0.
const onDisk = -2
