package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// matrixPadding is what the allocator adds to optimizer states and gradients
// of an MLP's matrices where every GPU runs the whole model. States come in
// the first step, after a backward: where it freed wider activations, they
// are cut from those and pay nothing; where activations are no wider, or
// recomputed, so that those of one block alone are there, the first are cut
// from what the loss left, and each of the others takes a segment and pays as
// its weight did. A gradient is made when its own layer's activations have
// just been freed, recomputed or not. Under a device map the loss is on one
// GPU, and who pays depends on the map: not counted.
func (e *estimator) matrixPadding(i int) (states, grads int64) {
	l := &e.g.Layers[i]
	op, ok := l.Op.(modelgraph.MLP)
	if !ok || e.w.Strategy != costmodel.DDP || e.frozen() {
		return 0, 0
	}
	tokens, _ := e.w.Tokens(l.Stream)
	width := e.compute.ComputeBytes() * op.Hidden * tokens
	width += rounding(width)
	each := e.w.Precision.WeightBytes()
	for j := range l.Params {
		t := &l.Params[j]
		size := t.Numel() * each
		pad := rounding(size)
		if t.Tied() || !t.DType.Float() || pad < 512 {
			continue
		}
		wider := width > size+pad
		if !wider || e.recomputes() {
			state, _ := e.stateOf(t.Shape, t.Numel(), each)
			cut := min(state, e.lossBlocks) / size // states that the loss's blocks have room for
			e.lossBlocks -= cut * size
			states += (state/size - cut) * pad
		}
		if !wider {
			grads += pad
		}
	}
	return states, grads
}

// freedByLoss is the size of the blocks that the loss leaves: logits, fp32
// logits, log-softmax and a gradient (modeling code's ForCausalLMLoss).
func (e *estimator) freedByLoss() int64 {
	var n int64
	for i := range e.g.Layers {
		if h, ok := e.g.Layers[i].Op.(modelgraph.Head); ok && (e.w.Loss == "" || e.w.Loss == costmodel.LossEager) {
			s := e.shape(i)
			n += (s.Precision.ComputeBytes() + 3*4) * s.Logits * h.Vocab
		}
	}
	return n
}
