package timeline

import "github.com/devmap-dev/devmap/costmodel"

// stretch is units that run one after another; it emits the events of each part of a step. A
// [unitList] emits them layer by layer, a [Summary] as one event, so both share the engines.
type stretch interface {
	totals() totals
	// static is the memory alive throughout.
	static(emit func(stepEvent))
	// forward keeps what backward needs; bodyEnd drops what only the body of
	// the model needed and completes the caches; head is what runs then.
	forward(emit func(stepEvent))
	bodyEnd(emit func(stepEvent))
	head(emit func(stepEvent))
	// infer is a forward that keeps nothing.
	infer(emit func(stepEvent))
	backward(emit func(stepEvent))
	// last is each unit's backward after all others.
	last(emit func(stepEvent))
}

// totals are what does not depend on the order.
type totals struct {
	grads, step int64
	products    bool // anything in it runs matrix products
}

// unitList is a stretch with events layer by layer.
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

func (all unitList) static(emit func(stepEvent)) {
	for _, unit := range all {
		emit(stepEvent{Change: costmodel.Memory{
			Params:         unit.Params + unit.Buffers,
			OptimizerState: unit.OptimizerState,
			Grads:          unit.ResidentGrads,
			Workspace:      unit.Padding, // the allocator's rounding of parameters
		}, Owner: unit.Name})
	}
}

func (all unitList) forward(emit func(stepEvent)) {
	for _, unit := range all {
		if unit.Recompute {
			forwardToKeep(unit, emit)
		} else {
			forwardToSave(unit, emit)
		}
		what, name := "forward of ", unit.Name
		if last := len(unit.Layers) - 1; last >= 0 && unit.Layers[last].Loss { // the loss has run since
			what, name = "loss forward", ""
		}
		emit(stepEvent{Change: activations(unit.CheckpointedOutput + unit.AutocastCopies), What: what, Layer: name, Owner: unit.Name})
	}
}

func forwardToSave(unit *costmodel.Unit, emit func(stepEvent)) {
	for i := range unit.Layers {
		step := &unit.Layers[i]
		what, layer := "forward of ", step.Layer
		if step.Loss {
			what, layer = "loss forward", ""
		}
		// Forward counts the cache, which stays.
		emit(stepEvent{Change: costmodel.Memory{KVCache: step.KV}, Over: activations(step.Forward - step.KV), What: what, Layer: layer, Owner: step.Layer})
		emit(stepEvent{Change: activations(step.Saved + step.UntilBodyEnd), Owner: step.Layer})
	}
}

// forwardToKeep is the forward of a unit that is recomputed: what its layers save is gone when it ends.
func forwardToKeep(unit *costmodel.Unit, emit func(stepEvent)) {
	var saved, retained int64
	for i := range unit.Layers {
		step := &unit.Layers[i]
		emit(stepEvent{Over: activations(saved + step.Forward), What: "forward of ", Layer: step.Layer})
		saved += step.Saved
		retained += step.RecomputeSaved
	}
	emit(stepEvent{Change: activations(retained), Owner: unit.Name})
}

func (all unitList) bodyEnd(emit func(stepEvent)) {
	for _, unit := range all {
		emit(stepEvent{Change: activations(-unit.AutocastCopies), Owner: unit.Name})
		for i := range unit.Layers {
			step := &unit.Layers[i]
			emit(stepEvent{Change: costmodel.Memory{Activations: -step.UntilBodyEnd, KVCache: step.CacheGrowth}, Owner: step.Layer})
		}
	}
}

// grows reports caches that grow after the prompt; the last token then runs at the end.
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

func (all unitList) head(emit func(stepEvent)) { all.headOf(all.grows(), emit) }

func (all unitList) headOf(grown bool, emit func(stepEvent)) {
	what := "forward of "
	if grown {
		what = "last token in "
	}
	for _, unit := range all {
		for i := range unit.Layers {
			if step := &unit.Layers[i]; step.HeadPeak != 0 {
				emit(stepEvent{Over: activations(step.HeadPeak), What: what, Layer: step.Layer})
			}
		}
	}
}

func (all unitList) infer(emit func(stepEvent)) {
	for _, unit := range all {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			emit(stepEvent{Over: activations(max(step.Forward, step.HeadPeak)), What: "forward of ", Layer: step.Layer})
		}
	}
}

func (all unitList) backward(emit func(stepEvent)) {
	for i := len(all) - 1; i >= 0; i-- {
		unitBackward(all[i], emit)
	}
}

func unitBackward(unit *costmodel.Unit, emit func(stepEvent)) {
	if unit.CheckpointedOutput > 0 {
		// Its output stays until the next unit's backward is done.
		emit(stepEvent{What: "backward of ", Layer: unit.Name})
		emit(stepEvent{Change: activations(-unit.CheckpointedOutput), Owner: unit.Name})
	}
	if unit.Recompute {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			// Forward counts what was kept.
			emit(stepEvent{Change: activations(-step.RecomputeSaved), Over: activations(step.Forward), What: "recompute of ", Layer: step.Layer, Owner: unit.Name})
			emit(stepEvent{Change: activations(step.Saved), Owner: step.Layer})
		}
	}
	for i := len(unit.Layers) - 1; i >= 0; i-- {
		step := &unit.Layers[i]
		what, layer := "backward of ", step.Layer
		if step.Loss {
			what, layer = "loss backward", ""
		}
		over := costmodel.Memory{Activations: step.Backward - step.BackwardGrads, Grads: step.BackwardGrads}
		emit(stepEvent{Over: over, What: what, Layer: layer, Owner: step.Layer})
		emit(stepEvent{Change: costmodel.Memory{Activations: -step.Saved, Grads: step.Grads}, Owner: step.Layer})
	}
}

func (all unitList) last(emit func(stepEvent)) {
	for _, unit := range all {
		if unit.LastBackward != 0 {
			emit(stepEvent{Over: activations(unit.LastBackward), What: "backward of ", Layer: unit.Name})
		}
	}
}
