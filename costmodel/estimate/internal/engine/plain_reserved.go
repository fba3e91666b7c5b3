package engine

import (
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/reserve"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// followMap has a table follow the requests of a device that holds some units
// ([costmodel.Table.Marks]). The model is taken apart once, and simulated a device
// at a time.
func followMap(model *layers.Model, table *costmodel.Table) {
	each := ops.WeightBytes(model.Workload.Precision)
	state, _ := model.Optimizer.State(nil, 1024, each)
	device := reserve.Plain{
		Stored: each, States: state / (1024 * each), MicroBatches: int(min(3, max(1, model.Workload.MicroBatches))), Steps: 3,
	}
	whole := sync.OnceValues(func() (*reserve.Decoder, bool) { return reserve.Follow(model) })
	var simulating sync.Mutex
	table.Marks = func(units []int, input bool) [][2]int64 {
		decoder, ok := whole()
		if !ok || model.Frozen {
			return nil
		}
		simulating.Lock()
		defer simulating.Unlock()
		contains := func(layer int) bool { return slices.Contains(units, model.Layers[layer].UnitIndex) }
		return device.Simulate(decoder.Part(contains, input, table.OutputsDropped))
	}
}
