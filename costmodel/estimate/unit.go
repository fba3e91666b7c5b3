package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// unit adds up the layers of one wrap unit.
func (e *estimator) unit(u int) costmodel.Unit {
	unit := &e.g.Units[u]
	out := costmodel.Unit{Name: unit.Name, Origin: costmodel.Analytic}
	train := e.w.Mode == costmodel.Train
	for _, i := range unit.Exec() {
		l, c := &e.g.Layers[i], &e.costs[i]
		out.Params += e.params(l)
		out.Buffers += l.BufferBytes()
		if l.Declared != nil {
			out.Origin = costmodel.Declared
		}
		if e.w.Mode == costmodel.Load {
			continue
		}
		step := c.Step
		if train && e.runs(i) {
			state, transient := e.optimizer(l)
			out.OptimizerState += state
			out.StepTransient += transient
			if e.w.MicroBatches > 1 { // gradients stay between micro-batches
				out.HeldGrads += step.Grads
				step.Backward -= step.BackwardGrads
				step.Grads, step.BackwardGrads = 0, 0
			}
		}
		out.Steps = append(out.Steps, step)
		out.FLOPs += c.FLOPs
		out.Output = c.Output
	}
	if train && e.w.Recompute == costmodel.RecomputeFull && len(out.Steps) > 1 {
		out.Recompute, out.Input = true, e.input(unit)
	}
	return out
}

// runs reports whether a layer sees any token, so that it gets gradients.
func (e *estimator) runs(i int) bool {
	tokens, _ := e.w.Tokens(e.g.Layers[i].Stream)
	return tokens > 0
}

// params is the loaded size of a layer's parameters.
func (e *estimator) params(l *modelgraph.Layer) int64 {
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return l.Declared.ParamsBytes
	}
	p := e.w.Precision
	if e.w.StoredTypes {
		p = costmodel.AsStored
	}
	var n int64
	for i := range l.Params {
		if t := &l.Params[i]; !t.Tied() {
			n += p.Stored(t)
		}
	}
	return n
}

// input is the size of the hidden state that enters a unit.
func (e *estimator) input(u *modelgraph.Unit) int64 {
	for _, i := range u.Exec() {
		for _, j := range e.g.Layers[i].InputLayers() {
			if j < u.First || j >= u.End {
				return e.costs[j].Output
			}
		}
	}
	return 0
}
