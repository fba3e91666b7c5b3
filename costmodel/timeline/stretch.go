package timeline

import "github.com/devmap-dev/devmap/costmodel"

// stretch is units that run one after another, as an engine sees them: it
// makes the events of each part of a step. [unitList] makes them layer by layer,
// a [Summary] as one that stands for all, so that an engine is written once
// for both readings.
type stretch interface {
	totals() totals
	// static is what is there throughout.
	static(emit func(Event))
	// forward keeps what backward needs; bodyEnd drops what only the body of
	// the model needed and completes the caches; head is what runs then.
	forward(emit func(Event))
	bodyEnd(emit func(Event))
	head(emit func(Event))
	// infer is a forward of which nothing stays.
	infer(emit func(Event))
	backward(emit func(Event))
	// last is each unit's backward where it runs after that of all others.
	last(emit func(Event))
}

// totals are what does not depend on the order.
type totals struct {
	grads, step int64
	products    bool // anything in it runs matrix products
}

// unitList is a stretch of which each layer's events are told.
type unitList []*costmodel.Unit

func (all unitList) totals() totals {
	var sum totals
	for _, unit := range all {
		sum.step += unit.StepTransient
		sum.products = sum.products || unit.Products
		for i := range unit.Layers {
			sum.grads += unit.Layers[i].Grads
		}
	}
	return sum
}

func (all unitList) static(emit func(Event)) {
	for _, unit := range all {
		emit(Event{Change: costmodel.Memory{
			Params:         unit.Params + unit.Buffers,
			OptimizerState: unit.OptimizerState,
			Grads:          unit.HeldGrads,
			Workspace:      unit.Padding, // the allocator's rounding of parameters
		}})
	}
}

func (all unitList) forward(emit func(Event)) {
	for _, unit := range all {
		if unit.Recompute {
			forwardToKeep(unit, emit)
		} else {
			forwardToSave(unit, emit)
		}
		emit(Event{Change: activations(unit.CheckpointedOutput + unit.AutocastCopies), What: "forward of ", Layer: unit.Name})
	}
}

func forwardToSave(unit *costmodel.Unit, emit func(Event)) {
	for i := range unit.Layers {
		step := &unit.Layers[i]
		what, layer := "forward of ", step.Layer
		if step.Loss {
			what, layer = "loss forward", ""
		}
		// Forward counts the cache, which stays.
		emit(Event{Change: costmodel.Memory{KVCache: step.KV}, Over: activations(step.Forward - step.KV), What: what, Layer: layer})
		emit(Event{Change: activations(step.Saved + step.UntilBodyEnd)})
	}
}

// forwardToKeep is the forward of a unit that is recomputed: what its layers
// save is gone when it ends.
func forwardToKeep(unit *costmodel.Unit, emit func(Event)) {
	var saved, kept int64
	for i := range unit.Layers {
		step := &unit.Layers[i]
		emit(Event{Over: activations(saved + step.Forward), What: "forward of ", Layer: step.Layer})
		saved += step.Saved
		kept += step.RecomputeKept
	}
	emit(Event{Change: activations(kept)})
}

func (all unitList) bodyEnd(emit func(Event)) {
	for _, unit := range all {
		end := costmodel.Memory{Activations: -unit.AutocastCopies}
		for i := range unit.Layers {
			end.Activations -= unit.Layers[i].UntilBodyEnd
			end.KVCache += unit.Layers[i].CacheGrowth
		}
		emit(Event{Change: end})
	}
}

// grows reports caches that grow after the prompt: what runs at the end is
// then the last token, through every layer.
func (all unitList) grows() bool {
	for _, unit := range all {
		for i := range unit.Layers {
			if unit.Layers[i].CacheGrowth != 0 {
				return true
			}
		}
	}
	return false
}

func (all unitList) head(emit func(Event)) { all.headOf(all.grows(), emit) }

func (all unitList) headOf(grown bool, emit func(Event)) {
	what := "forward of "
	if grown {
		what = "last token in "
	}
	for _, unit := range all {
		for i := range unit.Layers {
			if step := &unit.Layers[i]; step.HeadPeak != 0 {
				emit(Event{Over: activations(step.HeadPeak), What: what, Layer: step.Layer})
			}
		}
	}
}

func (all unitList) infer(emit func(Event)) {
	for _, unit := range all {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			emit(Event{Over: activations(max(step.Forward, step.HeadPeak)), What: "forward of ", Layer: step.Layer})
		}
	}
}

func (all unitList) backward(emit func(Event)) {
	for i := len(all) - 1; i >= 0; i-- {
		unitBackward(all[i], emit)
	}
}

func unitBackward(unit *costmodel.Unit, emit func(Event)) {
	if unit.CheckpointedOutput > 0 {
		// What it handed on stays until the next unit's backward is done.
		emit(Event{What: "backward of ", Layer: unit.Name})
		emit(Event{Change: activations(-unit.CheckpointedOutput)})
	}
	if unit.Recompute {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			// Forward counts what was kept.
			emit(Event{Change: activations(-step.RecomputeKept), Over: activations(step.Forward), What: "recompute of ", Layer: step.Layer})
			emit(Event{Change: activations(step.Saved)})
		}
	}
	for i := len(unit.Layers) - 1; i >= 0; i-- {
		step := &unit.Layers[i]
		what, layer := "backward of ", step.Layer
		if step.Loss {
			what, layer = "loss backward", ""
		}
		over := costmodel.Memory{Activations: step.Backward - step.BackwardGrads, Grads: step.BackwardGrads}
		emit(Event{Over: over, What: what, Layer: layer})
		emit(Event{Change: costmodel.Memory{Activations: -step.Saved, Grads: step.Grads}})
	}
}

func (all unitList) last(emit func(Event)) {
	for _, unit := range all {
		emit(Event{Over: activations(unit.LastBackward), What: "backward of ", Layer: unit.Name})
	}
}
