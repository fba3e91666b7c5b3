package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Units are a model's units, in the graph's order, and warnings.
func Units(model *Model) (units []costmodel.Unit, warnings []costmodel.Message) {
	states := matrixStates{model: model, lossBlocks: freedByLoss(model)}
	if model.Rules.Padding || model.Rules.StatesApart || model.Rules.Cut || model.Rules.InOrder {
		states.rests = model.rests()
	}
	rests, followed := model.Followed()
	for index := range model.Graph.Units {
		unit := adder{Model: model, index: index}
		unit.add(&states)
		units = append(units, unit.out)
	}
	if followed {
		Spread(units, rests[0])
	}
	if oneLargest(model) {
		largestStep(units)
	}
	passOutputs(model, units)
	holdStates(model, units)
	applyTape(model, units)
	if retainsInputs(model, units) {
		warnings = append(warnings, costmodel.Messagef("linear layers of LLM.int8() keep their inputs although blocks are recomputed (bitsandbytes holds them outside autograd's saved tensors); %v does not", costmodel.Set("quantize", value.NF4)))
	}
	return units, warnings
}

// largestStep keeps only the largest unit's step temporaries: they are never alive together.
func largestStep(units []costmodel.Unit) {
	var largest *costmodel.Unit
	for i := range units {
		if unit := &units[i]; largest == nil || unit.StepTransient > largest.StepTransient {
			if largest != nil {
				largest.StepTransient = 0
			}
			largest = unit
		} else {
			unit.StepTransient = 0
		}
	}
}

// adder adds up one unit.
type adder struct {
	*Model
	index int
	out   costmodel.Unit
}

func (unit *adder) add(states *matrixStates) {
	out := &unit.out
	*out = costmodel.Unit{Name: unit.Graph.Units[unit.index].Name}
	var arguments, waiting, casts, weights int64
	for _, i := range unit.Unit(unit.index) {
		layer := &unit.Layers[i]
		stored := unit.stores(layer)
		if unit.Workload.Mode == costmodel.Load {
			continue
		}
		if states.rests != nil {
			out.Padding += states.rests[i]
		} else {
			out.Padding += layer.Shard.Padding()
		}
		step := layer.Cost.Memory
		step.Weights = stored
		step.Forward += weights
		weights += ops.Weights(layer.Op, &layer.Shape)
		if unit.Train && layer.Runs {
			step = unit.trains(layer, states)
		}
		out.Products = out.Products || layer.Runs && ops.Products(layer.Op)
		arguments, casts = arguments+layer.Cost.Arguments, casts+layer.Cost.Casts
		waiting = layer.Cost.Waiting // of the layer that runs last
		out.Layers = append(out.Layers, step)
		out.FLOPs += layer.Cost.FLOPs
		out.Output = layer.Cost.Output
	}
	unit.earlierRuns()
	// MllamaVisionEncoderLayer is no GradientCheckpointingLayer (modeling_mllama.py of Transformers
	// 5.17): gradient_checkpointing_enable leaves it unchanged.
	if unit.Train && unit.again[unit.index] && len(out.Layers) > 1 && !tileBlock(unit.Graph, unit.index) && !unit.looksUp() {
		out.Recompute = true
		out.AutocastCopies = casts
		if waiting > 0 {
			arguments += waiting // forward runs again while it exists
		}
	}
	out.Work = work(unit.Model, unit.index)
	for k := range out.Layers {
		out.Layers[k].Forward += arguments // copies that the hook made for the call
	}
	unit.embedsLast()
	keepSelected(unit.Model, unit.index, out)
	keepInputs(unit.Model, unit.index, out)
}

// stores adds the layer's permanent bytes, and returns the bytes that its forward reads.
func (unit *adder) stores(layer *Layer) int64 {
	out := &unit.out
	out.Params += layer.Shard.Bytes()
	for i := range layer.Buffers {
		out.Buffers += layer.Buffers[i].Bytes
	}
	out.Buffers += unit.rotations(layer)
	weights := layer.Shard.ReadBytes()
	out.OffloadBytes += weights
	if layer.Declared != nil {
		out.Declared = true
	}
	return weights
}

// rotations is a program's own fp32 table of rotations. torchtune's blocks share one of all the
// model's positions (0.6, modules/position_embeddings.py). Each layer of torchtitan has one of the
// sequence's positions (0.3, models/common/decoder.py, update_from_config).
func (unit *adder) rotations(layer *Layer) int64 {
	switch op := layer.Op.(type) {
	case modelgraph.Rotary:
		if unit.Rules.Modules == ops.Torchtune {
			return 4 * op.HeadDim * unit.Graph.MaxSeq
		}
	case modelgraph.Attention:
		if unit.Rules.Modules == ops.Torchtitan && op.Rope {
			return 4 * op.HeadDim * unit.Workload.Seq
		}
	}
	return 0
}

// trains adds the optimizer's tensors of a layer, and returns its step with the gradients it leaves.
func (unit *adder) trains(layer *Layer, states *matrixStates) costmodel.LayerMemory {
	out, step := &unit.out, layer.Cost.Memory
	state, transient := layer.Shard.States()
	out.OptimizerState += state
	if out.StepTransient += transient; unit.Optimizer.inTurn() {
		out.StepTransient = max(out.StepTransient-transient, transient)
	}
	padding, grads := states.padding(layer)
	out.Padding += padding
	step.Grads += grads
	step.Backward = max(step.Backward, step.Grads-step.Saved)
	if unit.Workload.OptimizerInBackward && !unit.Rules.Cut {
		// The update uses a gradient up, as a sum with an existing one would.
		out.StepTransient -= transient
		step = accumulating(step, layer.Grads.Waits)
		step.Backward += layer.Shard.updating()
	} else if unit.Rules.GradsPersist {
		out.ResidentGrads += step.Grads
		step = accumulating(step, layer.Grads.Waits)
	}
	return step
}

// accumulating is a step with gradients of earlier micro-batches, the peak's, since all gradients
// exist throughout. waits is a tied parameter's new gradient, kept for the others.
func accumulating(step costmodel.LayerMemory, waits int64) costmodel.LayerMemory {
	step.Grads = waits
	step.Backward = step.AccumPeak
	step.BackwardGrads = 0
	return step
}

// embedsLast is the backward of a text embedding if the model has a tower. The embedding runs
// before the tower (modeling_internvl.py InternVLModel.forward), so autograd reaches it last. With
// a tied head, its gradient and the sum of both are made when the tower's gradients exist. The sum
// is a new tensor, except under autocast, whose casts autograd may add to (input_buffer.cpp
// accumulate; seen in fixtures/measured/vl_history.json, layers_time.json).
func (unit *adder) embedsLast() {
	out := &unit.out
	if unit.Workload.Images == 0 || !unit.Train || out.ResidentGrads > 0 {
		return
	}
	for k, i := range unit.Unit(unit.index) {
		layer := &unit.Layers[i]
		if _, ok := layer.Op.(modelgraph.Embedding); ok && layer.Stream.Kind == modelgraph.Text {
			out.LastBackward = max(out.LastBackward, out.Layers[k].Backward-out.Layers[k].Grads)
			if !ops.MixedPrecision(unit.Rules.Compute) {
				out.LastBackward = max(out.LastBackward, 2*layer.Grads.Second)
			}
		}
	}
}

// passOutputs moves the input of every recomputed unit to the unit that makes it, and keeps it on
// that device. The engine checkpoints a block's argument before the hook copies it:
// GradientCheckpointingLayer wraps the hooked forward.
func passOutputs(model *Model, units []costmodel.Unit) {
	windows, mask := windowMask(model)
	for unit := range units {
		if !units[unit].Recompute {
			continue
		}
		if from := model.Reads(unit); from >= 0 {
			if table := tableBefore(model, from); table >= 0 {
				from = table
			}
			maker := &units[model.Layers[from].UnitIndex]
			maker.CheckpointedOutput = max(maker.CheckpointedOutput, model.Layers[from].Cost.Output)
			if unit == windows {
				maker.CheckpointedOutput += mask
			}
		}
	}
}

// Spread divides the model's rests among units by parameters, so that equal units cost the same.
func Spread(units []costmodel.Unit, rests int64) {
	var total int64
	for i := range units {
		total += units[i].Params
	}
	for i := range units {
		units[i].Padding = int64(float64(rests) * float64(units[i].Params) / float64(max(1, total)))
	}
}
