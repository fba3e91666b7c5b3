package timeline

import "github.com/devmap-dev/devmap/costmodel"

// DeviceMapSum is the peak by the sum of a device map's events.
func DeviceMapSum(mode costmodel.Mode, owned []*costmodel.Unit, resident Resident) int64 {
	return outcomeOf(func(emit func(stepEvent)) { deviceMap(mode, unitList(owned), &resident, emit) }).Peak
}

// outcomeOf is the outcome of events of any categories. Its peak is [walk]'s.
func outcomeOf(events producer) outcome {
	var reading folding
	events(reading.add)
	return reading.outcome
}

// Parts are the categories of memory.
var Parts = categories
