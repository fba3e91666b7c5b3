package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// unit adds up the layers of one wrap unit.
func (e *estimator) unit(u int) costmodel.Unit {
	unit := &e.g.Units[u]
	out := costmodel.Unit{Name: unit.Name, Origin: costmodel.Analytic}
	train := e.w.Mode == costmodel.Train
	var arguments, waiting, casts int64
	for _, i := range unit.Exec {
		l, c := e.held(i), &e.costs[i]
		out.Params += e.params(l)
		out.Buffers += l.BufferBytes()
		weights := e.read(l)
		out.Travels += weights
		if l.Declared != nil {
			out.Origin = costmodel.Declared
		}
		if e.w.Mode == costmodel.Load {
			continue
		}
		out.Padding += e.padding(l)
		step := c.Step
		step.Weights = weights
		if train && e.runs(i) {
			step = e.trains(&out, i)
		}
		out.Products = out.Products || e.runs(i) && ops.Products(l.Op)
		arguments, casts = arguments+c.Arguments, casts+c.Casts
		waiting = c.Waiting // of the layer that runs last
		out.Steps = append(out.Steps, step)
		out.FLOPs += c.FLOPs
		out.Output = c.Output
	}
	if train && e.recomputes() && len(out.Steps) > 1 {
		out.Recompute = true
		out.Cached = casts
	}
	out.Work = e.work(u)
	if out.Recompute && waiting > 0 {
		arguments += waiting // forward runs again beside it
	}
	for i := range out.Steps {
		out.Steps[i].Forward += arguments // copies that the hook made for the call
	}
	e.embedsLast(u, &out)
	e.keepSelected(u, &out)
	e.keepInputs(u, &out)
	return out
}

// trains adds what the optimizer has of a layer to its unit, and is the
// layer's step with the gradients that it leaves.
func (e *estimator) trains(out *costmodel.Unit, i int) costmodel.Step {
	step := e.costs[i].Step
	state, transient := e.optimizer(e.held(i))
	out.OptimizerState += state
	out.StepTransient += transient
	states, grads := e.matrixPadding(i)
	out.Padding += states
	step.Grads += grads
	step.Backward = max(step.Backward, step.Grads-step.Saved)
	if e.engine.views || e.w.MicroBatches > 1 && !e.w.Strategy.Traits().Staged && !e.engine.cut {
		out.HeldGrads += step.Grads
		step = accumulating(step, e.grads[i].waits)
	}
	return step
}

// accumulating is a step when its parameters have gradients already, from
// micro-batches before: the peak is in one of these, as all gradients exist
// throughout it. waits is a tied parameter's new gradient, kept for the others.
func accumulating(step costmodel.Step, waits int64) costmodel.Step {
	step.Grads = waits
	step.Backward = step.Again
	step.BackwardGrads = 0
	return step
}

// runs reports whether a layer sees any token, so that it gets gradients.
func (e *estimator) runs(i int) bool {
	tokens, _ := e.w.Tokens(e.g.Layers[i].Stream)
	return tokens > 0
}

// params is the loaded size of a layer's parameters.
func (e *estimator) params(l *modelgraph.Layer) int64 {
	n, _ := e.adapterParams(l)
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return n + l.Declared.ParamsBytes
	}
	for i := range l.Params {
		if t := &l.Params[i]; !t.Tied() {
			n += e.stored(t)
		}
	}
	return n
}

// read is the loaded size of the parameters that a layer's forward reads.
func (e *estimator) read(l *modelgraph.Layer) int64 {
	n := e.params(l)
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return n
	}
	for i := range l.Params {
		if t := &l.Params[i]; t.Tied() {
			n += e.stored(t)
		}
	}
	return n
}

// stored is the loaded size of a tensor.
func (e *estimator) stored(t *modelgraph.Tensor) int64 {
	if parts := e.quantised(t); parts != nil {
		var n int64
		for _, size := range parts {
			n += size
		}
		return n
	}
	if e.w.StoredTypes {
		return costmodel.AsStored.Stored(t)
	}
	if e.engine.weights != nil {
		return e.engine.weights(e.w.Precision).Stored(t)
	}
	return e.w.Precision.Stored(t)
}

// handOver charges the input of every recomputed unit to the unit that makes
// it, on whose device it stays: the engine checkpoints the tensor that a block
// is called with, before the hook copies it (GradientCheckpointingLayer wraps
// the hooked forward).
func (e *estimator) handOver(units []costmodel.Unit) {
	for u := range units {
		if !units[u].Recompute {
			continue
		}
		if from := e.input(&e.g.Units[u]); from >= 0 {
			maker := &units[e.g.Layers[from].UnitIndex()]
			maker.Handed = max(maker.Handed, e.costs[from].Output)
		}
	}
}

// input is the layer outside a unit whose output enters it, or -1.
func (e *estimator) input(u *modelgraph.Unit) int {
	for _, i := range u.Exec {
		for _, j := range e.g.Layers[i].InputLayers() {
			if j < u.First || j >= u.End {
				return j
			}
		}
	}
	return -1
}
