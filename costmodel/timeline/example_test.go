package timeline_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// block and head are two units of round sizes.
func block() *costmodel.Unit {
	return &costmodel.Unit{Name: "h", Params: 10, OptimizerState: 20, Layers: []costmodel.LayerMemory{
		{Layer: "h", Saved: 100, Forward: 130, Backward: 40, BackwardGrads: 10, Grads: 10},
	}}
}

func head() *costmodel.Unit {
	return &costmodel.Unit{Name: "head", Params: 5, Layers: []costmodel.LayerMemory{
		{Layer: "head", Saved: 50, Forward: 200, Backward: 170, BackwardGrads: 5, Grads: 5, Loss: true},
	}}
}

// A step on one device, and the moment when it holds most.
func ExampleDeviceMap() {
	peak := timeline.DeviceMap(costmodel.Train, []*costmodel.Unit{block(), head()}, timeline.Resident{}).Peak()
	fmt.Println(peak.Memory.Total(), "at", peak.At)
	fmt.Println("activations", peak.Memory.Activations, "gradients", peak.Memory.Grads)
	// Output:
	// 355 at loss backward
	// activations 315 gradients 5
}

// Stretches answers for any stretch of units without looking at them again.
func ExampleStretches() {
	units := []costmodel.Unit{*block(), *block(), *head()}
	chain := timeline.Stretches(units)
	for end := 1; end <= len(units); end++ {
		fmt.Println(end, "units:", chain(0, end).Peak(timeline.Resident{}))
	}
	// Output:
	// 1 units: 170
	// 2 units: 300
	// 3 units: 485
}
