package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// maxCost bounds the sum of all layers' figures, so that no sum of costs
// overflows an int64.
const maxCost = 1 << 60

// checkStreams refuses token streams whose length times the batch is out of
// range.
func checkStreams(g *modelgraph.Graph, w *costmodel.Workload) error {
	for i := range g.Layers {
		s := g.Layers[i].Stream
		tokens, field := float64(w.MicroBatch())*float64(s.ImageTokens(w.ImageSize)), "batch"
		if s.Kind == modelgraph.Image {
			tokens, field = tokens*float64(w.Images), "images"
		}
		if tokens > maxTokens {
			return &costmodel.FieldError{Field: field, Msg: costmodel.Messagef("layer %q would see %.3g tokens, more than 2^32", g.Layers[i].Name, tokens)}
		}
	}
	return nil
}

// bound refuses sizes that would overflow, before any cost is worked out.
func (e *estimator) bound() error {
	if e.w.Mode == costmodel.Load {
		return nil // bounded by modelgraph.New
	}
	sum := 0.
	for i := range e.g.Layers {
		s := e.shape(i)
		if s.Tokens > 0 {
			sum += ops.Bound(e.g.Layers[i].Op, &s)
		}
		if sum > maxCost {
			return &costmodel.FieldError{Field: "batch", Msg: costmodel.Messagef("with %d tokens the layers up to %q would take more than 2^60 bytes", s.Tokens, e.g.Layers[i].Name)}
		}
	}
	// A pipeline keeps something of every micro-batch until the step ends.
	if m := e.w.MicroBatches; e.w.Strategy.Traits().Staged && sum*float64(m) > maxCost {
		return &costmodel.FieldError{Field: "micro_batches", Msg: costmodel.Messagef("%d micro-batches of up to %.3g bytes in a pipeline would take more than 2^60 bytes; at most %d can be counted", m, sum, int64(maxCost/sum))}
	}
	return nil
}
