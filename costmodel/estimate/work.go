package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// work is what a unit takes of its device's time, and what of it crosses the
// links.
func (e *estimator) work(u int) costmodel.Work {
	unit := &e.g.Units[u]
	var w costmodel.Work
	layers := 0
	for _, i := range unit.Exec {
		l := &e.g.Layers[i]
		w.Weights += l.ParamCount()
		for k := range l.Params {
			if !l.Params[k].Tied() {
				w.Tensors++
			}
		}
		if e.w.Mode == costmodel.Load {
			continue
		}
		layers++
		s := e.shape(i)
		f, b := ops.Passes(l.Op, &s, e.costs[i].FLOPs, e.w.LoRARank > 0)
		f, b = profiled(l, f, b)
		w.Forward, w.Backward = w.Forward.Add(f), w.Backward.Add(b)
		w.Output = e.costs[i].Output
		if e.w.Mode == costmodel.Train && e.runs(i) {
			w.Trained += e.trained(l)
		}
		if e.w.NewTokens > 0 && e.runs(i) {
			w.Token = w.Token.Add(e.token(i))
		}
	}
	w.Block = layers > 1
	w.Update = float64(w.Trained) * e.update()
	if e.w.Mode == costmodel.Train && e.recomputes() && w.Block {
		w.Backward = w.Backward.Add(w.Forward)
	}
	if e.w.MicroBatches > 1 { // each gradient is added to the one that is there
		w.Backward.Traffic += 3 * float64(w.Trained*e.compute.WeightBytes())
	}
	return w
}

// profiled puts the seconds that a layer declares in the place of its
// operations.
func profiled(l *modelgraph.Layer, f, b costmodel.Pass) (forward, backward costmodel.Pass) {
	if d := l.Declared; d != nil && d.ForwardSeconds >= 0 {
		f = costmodel.Pass{Profiled: d.ForwardSeconds}
	}
	if d := l.Declared; d != nil && d.BackwardSeconds >= 0 {
		b = costmodel.Pass{Profiled: d.BackwardSeconds}
	}
	return f, b
}

// trained is the elements of a layer's own parameters that get gradients:
// all, or its adapters' two matrices alone.
func (e *estimator) trained(l *modelgraph.Layer) int64 {
	var n int64
	if e.w.LoRARank > 0 {
		for _, a := range e.adapters[l] {
			n += a.Rank * (a.In + a.Out)
		}
		return n
	}
	for i := range l.Params {
		if t := &l.Params[i]; !t.Tied() && t.DType.Float() {
			n += t.Numel()
		}
	}
	return n
}

// update is the bytes an element that the optimizer reads and writes: the
// gradient read, the weight and each state read and written. DeepSpeed's
// 16-bit weights are written from the fp32 ones (stage_1_and_2.py step).
func (e *estimator) update() float64 {
	w := float64(e.w.Precision.WeightBytes())
	state := 2 * w // AdamW
	switch e.w.Optimizer {
	case costmodel.AdamW8bit:
		state = 2
	case costmodel.SGD:
		state = 0
	case costmodel.SGDMomentum, costmodel.Muon:
		state = w
	case costmodel.Adafactor:
		state = 4 // the update itself, made and read
	case costmodel.AdamW, costmodel.AdamWForeach:
	}
	if e.w.EMA {
		state += w
	}
	return w + 2*w + 2*state
}

// token is one forward of one token a sequence: a product reads every weight
// once, attention the cache, half grown.
func (e *estimator) token(i int) costmodel.Pass {
	c := &e.costs[i]
	s := e.shape(i)
	forward, _ := ops.Passes(e.g.Layers[i].Op, &s, c.FLOPs, true)
	share := float64(max(1, e.w.MicroBatch())) / float64(max(1, e.shape(i).Tokens))
	if _, ok := e.g.Layers[i].Op.(modelgraph.Head); ok {
		share = 1 // it projects one position a sequence in any case
	}
	return costmodel.Pass{
		Products: c.FLOPs * share,
		Traffic:  float64(e.params(&e.g.Layers[i]) + c.Step.KV + c.Step.Grown/2),
		Kernels:  forward.Kernels,
	}
}
