package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// tape is the memory of a step that ran (devmap.export), at a model's sizes.
type tape struct {
	layers []*tapedLayer // by layer; nil: it did not run
	// returned is the model's outputs, if the caller's device counts separately.
	returned, loss int64
	train          bool
	learned        bool  // by a table: it has no blocks of parameters, and moments are relative
	ranked         []int // layers as they run, if it is
}

// tapedLayer is a layer in it. copied is what another unit saves too, by that unit: on
// another device the layer has a copy.
type tapedLayer struct {
	saved, rests                  int64
	forward, backward, accumulate []tapedMoment
	copied                        []ofUnit
	products                      bool
	// A learned layer's place among those that run, the results in saved, and what lasts from its backward to the end.
	rank, returned, lasting int64
}

// tapedMoment is the bytes alive at once. past are temporary bytes, by the unit on the same device.
type tapedMoment struct {
	bytes int64
	past  []ofUnit
}

// ofUnit is what counts on the device of a unit.
type ofUnit struct {
	unit  int
	bytes int64
}

// factors multiply a tape's bytes ([modelgraph.Layer]).
func factors(model *Model) [6]int64 {
	batch, seq := MicroBatch(&model.Workload), model.Workload.Seq
	return [6]int64{1, batch, batch * seq, batch * seq * seq, seq, seq * seq}
}

// Taped reports a recorded step that matches the workload: in the precision of the weights, with
// all parameters trained, in a runtime with unchanged PyTorch modules. Its sizes are the
// workload's, or the tape has growth rules.
func Taped(model *Model) bool {
	runs, same := taped(model)
	return runs && same
}

// TapedElsewhere reports a recorded step at another batch or length, without growth rules.
func TapedElsewhere(model *Model) bool {
	runs, same := taped(model)
	return runs && !same
}

// plain reports PyTorch's modules as they are, with weights of the precision that computes.
func plain(model *Model) bool {
	workload := &model.Workload
	switch {
	case workload.Mode == costmodel.Load, workload.Quantize != "", workload.Float8 != "", workload.TP.Count() > 1, workload.Compile,
		workload.Recompute == value.RecomputeSelective, workload.ListsRecomputed(), model.Rules.Megatron:
		return false
	}
	return model.Rules.Compute == workload.Precision && slices.Contains([]string{value.Accelerate, value.Torch, value.Lightning}, workload.Runtime)
}

func taped(model *Model) (runs, same bool) {
	workload, taken := &model.Workload, model.Graph.Taken
	switch {
	case !plain(model):
		return false, false
	case learns(model):
		return true, true
	case model.Frozen || taken.Precision != string(workload.Precision):
		return false, false
	}
	same = taken.Batch == MicroBatch(workload) && (taken.Seq == 0 || taken.Seq == workload.Seq) && (taken.TargetSeq == 0 || taken.TargetSeq == workload.TargetSeq)
	for i := range model.Layers {
		step := model.Layers[i].Tape.Step(model.Train, model.Recomputes)
		if step == nil {
			continue
		}
		runs = true
		for _, moment := range step.Forward {
			same = same || len(moment.Bytes) > 1 && taken.TargetSeq == 0
		}
	}
	return runs, same
}

// longest bounds the bytes of a layer's tape.
func longest(model *Model, layer int) (most float64) {
	wanted, _ := asked(model)
	step, learned := model.Layers[layer].Tape.Step(model.Train, model.Recomputes), model.Layers[layer].Learned.Step(wanted)
	if step == nil && learned == nil {
		return 0
	}
	factors := factors(model)
	batch, seq := float64(MicroBatch(&model.Workload)), float64(model.Workload.Seq)
	if batch*seq*seq > maxCost {
		return 2 * maxCost
	}
	if learned != nil {
		for _, moments := range [...]moments{learned.Forward, learned.Backward, learned.Accumulate} {
			for i := range moments {
				most = max(most, atMost(moments[i].Bytes, factors))
			}
		}
		return most + atMost(learned.Saved, factors) + atMost(learned.Returned, factors) + atMost(learned.Lasting, factors)
	}
	for _, moment := range slices.Concat(step.Forward, step.Backward, step.Accumulate) {
		var sum float64
		for term, bytes := range moment.Bytes {
			sum += float64(bytes) * float64(factors[term])
		}
		most = max(most, sum)
	}
	return most
}

// tapeOf is the model's at the workload's sizes; nil without one.
func tapeOf(model *Model) *tape {
	if !Taped(model) {
		return nil
	}
	if learns(model) {
		return learnedTape(model)
	}
	factors := factors(model)
	bytesOf := func(vector []int64) (sum int64) {
		for term, bytes := range vector {
			sum += bytes * factors[term]
		}
		return sum
	}
	units := unitsByLayer(model)
	byUnit := func(of map[string][]int64) []ofUnit { return sumByUnit(units, of, bytesOf) }
	out := &tape{layers: make([]*tapedLayer, len(model.Layers)), train: model.Train}
	apart := model.Workload.Strategy == costmodel.DeviceMap
	for i := range model.Layers {
		step := model.Layers[i].Tape.Step(model.Train, model.Recomputes)
		if step == nil {
			continue
		}
		layer := &tapedLayer{saved: bytesOf(step.Saved), rests: step.Rests, products: step.Products, copied: byUnit(step.Copied)}
		if apart {
			out.returned, out.loss = out.returned+bytesOf(step.Returned), out.loss+bytesOf(step.Loss)
		} else {
			layer.saved += bytesOf(step.Returned)
		}
		for _, moment := range step.Forward {
			layer.forward = append(layer.forward, tapedMoment{bytesOf(moment.Bytes), byUnit(moment.Past)})
		}
		for _, moment := range step.Backward {
			layer.backward = append(layer.backward, tapedMoment{bytesOf(moment.Bytes), byUnit(moment.Past)})
		}
		for _, moment := range step.Accumulate {
			layer.accumulate = append(layer.accumulate, tapedMoment{bytesOf(moment.Bytes), byUnit(moment.Past)})
		}
		out.layers[i] = layer
	}
	return out
}

// largest is the largest moment on a device with these units.
func largest(moments []tapedMoment, own []bool) (most int64) {
	for i := range moments {
		bytes := moments[i].bytes
		for _, past := range moments[i].past {
			if !own[past.unit] {
				bytes -= past.bytes
			}
		}
		most = max(most, bytes)
	}
	return most
}

// forgets reports stages of a pipeline without training: they keep nothing for a backward.
func (tape *tape) forgets(model *Model) bool {
	return !tape.train && model.Workload.Strategy.Traits().Staged
}

// clear sets what the tape has by layers to 0 in a unit.
func (tape *tape) clear(unit *costmodel.Unit) {
	if !tape.learned {
		unit.Padding = 0
	}
	unit.Products, unit.Recompute, unit.CheckpointedOutput, unit.AutocastCopies, unit.LastBackward, unit.Entry, unit.Tail = false, false, 0, 0, 0, 0, 0
}

// apply sets the memory of a device's own units, out, to the tape's. The tape's moments are of all
// layers, so apply subtracts other units' saved bytes and gradients; the walk adds the device's own.
func (tape *tape) apply(model *Model, units []costmodel.Unit, owned []int, out []costmodel.Unit, copies bool) {
	var stage int64
	own := make([]bool, len(units))
	for _, u := range owned {
		own[u] = true
	}
	forgets := tape.forgets(model)
	shifts := tape.shifts(model, units, own)
	for at, u := range owned {
		unit := &out[at]
		tape.clear(unit)
		for k, i := range model.Unit(u) {
			step := &unit.Layers[k]
			*step = costmodel.LayerMemory{
				Layer: step.Layer, Grads: step.Grads, BackwardGrads: step.Grads, Weights: step.Weights,
				GatheredForward: step.GatheredForward, GatheredAgain: step.GatheredAgain, GatheredBackward: step.GatheredBackward, Reducing: step.Reducing,
			}
			layer := tape.layers[i]
			if layer == nil {
				continue
			}
			unit.Products = unit.Products || layer.products
			unit.Padding += layer.rests
			step.Saved = layer.saved
			step.Forward = max(step.Saved, largest(layer.forward, own)+shifts[i].forward)
			if forgets {
				step.Saved, step.Forward = 0, step.Forward+stage
				stage += layer.saved
				continue
			}
			for _, other := range layer.copied {
				if copies && !own[other.unit] {
					step.Saved, step.Forward = step.Saved+other.bytes, step.Forward+other.bytes
				}
			}
		}
	}
	if tape.train {
		tape.applyBackward(model, owned, out, own, shifts)
	}
}

// applyBackward sets what backward takes.
func (tape *tape) applyBackward(model *Model, owned []int, out []costmodel.Unit, own []bool, shifts []shift) {
	for at, u := range owned {
		unit := &out[at]
		for k, i := range model.Unit(u) {
			step, layer := &unit.Layers[k], tape.layers[i]
			if layer != nil {
				step.AccumPeak = largest(layer.accumulate, own) + shifts[i].backward
				step.Backward = largest(layer.backward, own) + shifts[i].backward + shifts[i].grads
			}
			if unit.ResidentGrads > 0 {
				step.Backward, step.BackwardGrads = step.AccumPeak, 0
			}
			step.Backward = max(step.Backward, step.Grads-step.Saved, 0)
			step.BackwardGrads = min(step.BackwardGrads, step.Backward)
		}
	}
}
