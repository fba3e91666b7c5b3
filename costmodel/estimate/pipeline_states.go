package estimate

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// statePadding is what the allocator adds to a unit's gradients and optimizer
// states. They are made in the first step, beside the blocks that activations
// left; one that fits none of these takes a new segment, and pays for it as
// its weight does (CUDACachingAllocator.cpp, malloc: get_free_block, then
// alloc_block). The widest activations are those of the feed-forward layers.
func (e *estimator) statePadding(unit *modelgraph.Unit) int64 {
	var n, widest int64
	for _, i := range unit.Exec {
		if op, ok := e.g.Layers[i].Op.(modelgraph.MLP); ok {
			s := e.shape(i)
			widest = max(widest, s.Precision.ComputeBytes()*s.Tokens*op.Hidden)
		}
	}
	if widest == 0 || e.frozen() || e.recomputes() {
		return 0 // not a block of layers, or blocks that depend on the history
	}
	for _, i := range unit.Exec {
		l := &e.g.Layers[i]
		for j := range l.Params {
			t := &l.Params[j]
			each := e.w.Precision.WeightBytes()
			size := t.Numel() * each
			if !t.DType.Float() || size < 10<<20 || size <= widest {
				continue
			}
			state, _ := e.stateOf(t.Shape, t.Numel(), each)
			n += (1 + state/size) * rounding(size)
		}
	}
	return n
}
