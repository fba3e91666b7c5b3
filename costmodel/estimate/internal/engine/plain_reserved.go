package engine

import (
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/reserve"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// followMap has a table follow the requests of a device that holds some units
// ([costmodel.Table.Marks]). The model is taken apart once, and simulated a device at a time.
func followMap(model *layers.Model, table *costmodel.Table) {
	device := plainDevice(model)
	whole := sync.OnceValues(func() (*reserve.Decoder, bool) { return reserve.Follow(model) })
	var simulating sync.Mutex
	table.Marks = func(units []int, input bool) [][2]int64 {
		decoder, ok := whole()
		if !ok || !followsStep(model) {
			return nil
		}
		simulating.Lock()
		defer simulating.Unlock()
		contains := func(layer int) bool { return slices.Contains(units, model.Layers[layer].UnitIndex) }
		return device.Simulate(decoder.Part(contains, input, table.OutputsDropped))
	}
}

// followsStep reports an optimizer with states of one size each.
func followsStep(model *layers.Model) bool {
	return !model.Train || !model.Optimizer.EMA && slices.Contains([]string{"", costmodel.AdamW, value.AdamWForeach, value.AdamW8bit, costmodel.SGD, value.SGDMomentum}, model.Optimizer.Kind)
}

func plainDevice(model *layers.Model) reserve.Plain {
	each := ops.WeightBytes(model.Workload.Precision)
	tensors := map[string]int64{costmodel.SGD: 0, value.SGDMomentum: 1}
	count, known := tensors[model.Optimizer.Kind]
	if !known {
		count = 2
	}
	return reserve.Plain{
		Stored: each, States: count, MicroBatches: int(min(3, max(1, model.Workload.MicroBatches))), Steps: 3,
		NewTokens: model.Workload.NewTokens,
		State:     func(numel, each int64) (state, transient int64) { return model.Optimizer.State(nil, numel, each) },
	}
}

// followWhole follows the requests of a GPU that trains the whole model, for their blocks' roundings
// ([layers.Rules]): with Transformers' modules, AdamW's or SGD's states and DDP's buckets.
func followWhole(model *layers.Model) (rests [2]int64, ok bool) {
	workload := &model.Workload
	path := &trainer.Of(workload.Preset).Path
	plain := path.Modules == "" && !path.LastGradients && !path.Reference && !path.Generates && !model.Rules.Compiled && !workload.Liger && !model.Optimizer.EMA
	if workload.GradientViews || workload.OptimizerInBackward || !plain || !slices.Contains([]string{"", costmodel.AdamW, costmodel.SGD, value.SGDMomentum}, model.Optimizer.Kind) {
		return rests, false
	}
	decoder, ok := reserve.FollowWider(model)
	if !ok || model.Frozen && !adaptsAll(model) {
		return rests, false
	}
	decoder.KeepsLogits = workload.OneGPU && !workload.LossOnly
	device := wholeDevice(model)
	return device.Rests(decoder), true
}

// adaptsAll reports adapters on all linear layers of the blocks, so gradients reach all of them.
func adaptsAll(model *layers.Model) bool {
	for i := range model.Layers {
		_, head := model.Layers[i].Op.(modelgraph.Head)
		if !head && len(model.Layers[i].Whole.Adapters) != len(layers.Projections(model.Graph, i)) {
			return false
		}
	}
	return true
}

// wholeMarks are such a GPU's [marks].
func wholeMarks(model *layers.Model) [][2]int64 {
	decoder, ok := reserve.Follow(model)
	if !ok {
		return nil
	}
	device := wholeDevice(model)
	return device.Simulate(decoder)
}

func wholeDevice(model *layers.Model) reserve.Plain {
	device := plainDevice(model)
	device.Buckets = model.Workload.World > 1 || !model.Workload.OneGPU && !trainer.Of(model.Workload.Preset).Path.PlainAlone
	device.Rebuilds = !findsUnused(&model.Workload)
	return device
}
