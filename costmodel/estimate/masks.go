package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// holdMasks keeps the masks of recomputed blocks where the tokens are
// embedded: one for all layers with a window, one for those without. The
// stages of a pipeline make their own.
func (e *estimator) holdMasks() {
	at := e.embedding()
	if at < 0 || e.w.Mode != costmodel.Train || !e.recomputes() || e.w.Strategy.Traits().Staged {
		return
	}
	var held [2]int64
	for i := range e.g.Layers {
		op, ok := e.g.Layers[i].Op.(modelgraph.Attention)
		if !ok || e.g.Layers[i].Stream.Kind != modelgraph.Text {
			continue
		}
		s := e.shape(i)
		size, window := ops.MaskHeld(op, &s)
		kind := 0
		if window {
			kind = 1
		}
		held[kind] = max(held[kind], size)
	}
	c := &e.costs[at].Step
	c.Saved += held[0] + held[1]
	c.Forward += held[0] + held[1]
}
