package estimate

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// checkPipeline refuses what the engine cannot run: its stages keep no cache.
func checkPipeline(w *costmodel.Workload) error {
	if w.Strategy.Traits().Staged && w.NewTokens > 0 {
		return &costmodel.FieldError{Field: "new_tokens", Msg: costmodel.Messagef("torch.distributed.pipelining runs one forward and generates no tokens (%v does; 0 works here)", costmodel.Set("strategy", "device-map"))}
	}
	return nil
}

// untied is the graph as a pipeline holds it: every stage that uses a tied
// parameter has a copy of its own, with its own gradient and states.
func untied(g *modelgraph.Graph) *modelgraph.Graph {
	out := *g
	out.Layers = slices.Clone(g.Layers)
	for i := range out.Layers {
		l := &out.Layers[i]
		l.Params = slices.Clone(l.Params)
		for j := range l.Params {
			l.Params[j].Owner = ""
		}
	}
	return &out
}

// pipeline is torch.distributed.pipelining: the loss is the caller's
// (loss_fn), and each stage computes the rotary's cosines and sines itself,
// for every micro-batch.
func pipeline(e *estimator, t *costmodel.Table) {
	t.Pipe = &costmodel.StageCosts{}
	for u := range t.Units {
		unit := &e.g.Units[u]
		if e.w.Mode == costmodel.Train { // without backward nothing is saved
			e.entry(&t.Units[u], unit)
		}
		for k, i := range unit.Exec {
			l, s := &e.g.Layers[i], &t.Units[u].Steps[k]
			s.Forward -= s.KV // a stage's forward keeps no cache
			s.KV, s.Grown, s.Held = 0, 0, 0
			if _, ok := l.Op.(modelgraph.Rotary); ok {
				t.Pipe.Rotary += e.costs[i].Output
				s.Saved = 0
			}
		}
		if e.w.Mode == costmodel.Train {
			t.Units[u].StatePadding = e.statePadding(unit)
		}
		if u > 0 && besideChain(e.g, unit) {
			t.Units[u].Output = t.Units[u-1].Output
		}
	}
}

// besideChain reports a unit that the hidden states do not pass: the rotary.
func besideChain(g *modelgraph.Graph, unit *modelgraph.Unit) bool {
	for i := unit.First; i < unit.End; i++ {
		if _, ok := g.Layers[i].Op.(modelgraph.Rotary); !ok {
			return false
		}
	}
	return true
}

// entry finds what a unit saves of its input, and how far back the gradient
// of its output goes as it came: a block's second residual carries it past
// the feed-forward layers to their norm.
func (e *estimator) entry(out *costmodel.Unit, unit *modelgraph.Unit) {
	exec := unit.Exec
	if len(exec) == 0 {
		return
	}
	first := &e.g.Layers[exec[0]]
	s := e.shape(exec[0])
	stream := s.Precision.StreamBytes()
	switch op := first.Op.(type) {
	case modelgraph.Norm:
		// x.to(float32) of an fp32 tensor is that tensor; layer_norm saves
		// its input as it is.
		if op.Style == modelgraph.LayerNorm || stream == 4 {
			out.Entry = stream * op.Dim * s.Tokens
		}
	case modelgraph.Head:
		if s.HeadAlone && !s.Precision.Mixed() {
			out.Entry = s.Precision.ComputeBytes() * op.Dim * s.Tokens
		}
	}
	out.Tail = 1
	if len(exec) > 1 {
		for out.Tail < len(exec) {
			if _, ok := e.g.Layers[exec[len(exec)-1-out.Tail]].Op.(modelgraph.Attention); ok {
				break
			}
			out.Tail++
		}
	}
}
