package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Table is the cost of every unit of g under a workload, which [Resolve] has
// completed.
func Table(g *modelgraph.Graph, w costmodel.Workload) (*costmodel.Table, error) {
	if err := check(&w); err != nil {
		return nil, err
	}
	if err := checkImages(g, &w); err != nil {
		return nil, err
	}
	if err := checkStreams(g, &w); err != nil {
		return nil, err
	}
	if err := checkFrozen(g, &w); err != nil {
		return nil, err
	}
	if err := checkFlash(g, &w); err != nil {
		return nil, err
	}
	if err := checkStored(g, &w); err != nil {
		return nil, err
	}
	stored := g
	if w.Dequantized {
		plain, err := dequantised(g)
		if err != nil {
			return nil, err
		}
		g = plain
	}
	if w.Strategy.Traits().Staged {
		g = untied(g)
	}
	e := estimator{g: g, w: w, engine: engineOf(&w), costs: make([]ops.Cost, len(g.Layers)), linears: linears(g)}
	e.prepare()
	e.warnStored(stored)
	return e.table(w)
}

type estimator struct {
	g      *modelgraph.Graph
	w      costmodel.Workload
	engine engine
	// compute is the precision that the ops see; weights between steps have
	// w.Precision's.
	compute  costmodel.Precision
	grads    []gradient
	costs    []ops.Cost
	alone    []bool // by layer: ops.Shape.HeadAlone
	inputs   int    // the layer with ops.Shape.Inputs, or -1
	warnings []string
	// layers with parameters whose costs are known, and those of which
	// neither operation nor cost is; the first of these.
	known, unknown int
	firstUnknown   string

	linears   map[*modelgraph.Tensor]linear
	adapters  map[*modelgraph.Layer][]ops.Adapter
	cutBy     map[*modelgraph.Layer]int64 // over how many GPUs a layer's copy is cut
	inputGrad []bool                      // by layer, under adapters: gradients go on to its input
	flat      bool                        // NF4 without nested statistics
	// lossBlocks is what is left of the loss's blocks while states are laid
	// out ([estimator.matrixPadding]).
	lossBlocks int64
}

func (e *estimator) table(w costmodel.Workload) (*costmodel.Table, error) {
	g := e.g
	e.compute = e.engine.compute(e.w.Precision)
	e.adapt()
	e.grads = e.gradients()
	e.alone, e.inputs = headAlone(g), inputs(g)
	if err := e.bound(); err != nil {
		return nil, err
	}
	for i := range g.Layers {
		e.costs[i] = e.layer(i)
	}
	if err := e.checkKnown(); err != nil {
		return nil, err
	}
	e.holdMasks()
	t := &costmodel.Table{Workload: w, Additive: w.Mode == costmodel.Load}
	e.lossBlocks = e.freedByLoss()
	for u := range g.Units {
		t.Units = append(t.Units, e.unit(u))
	}
	e.handOver(t.Units)
	if w.Mode != costmodel.Load {
		t.Workspaces = 1
		t.OutputsDropped = w.LossOnly
		e.engine.finish(e, t)
	}
	if w.Mode == costmodel.Train {
		t.Workspaces = 2 // the autograd thread has its own cuBLAS handle
	}
	t.Comm, t.Slack = catalogue.Comm(&w), catalogue.Slack(&w)
	e.situations(t)
	t.Warnings = e.warnings
	return t, nil
}

// layer is the cost of one layer's op, or its declared cost.
func (e *estimator) layer(i int) ops.Cost {
	l := &e.g.Layers[i]
	if e.w.Mode == costmodel.Load {
		return ops.Cost{}
	}
	s := e.shape(i)
	c := ops.Of(l.Op, &s)
	if l.Declared != nil {
		e.declared(&c, l.Declared, &s)
	}
	if !c.Known && len(l.Params) > 0 {
		c.Step.Grads = s.NewGrads
		e.unknown++
		if e.unknown == 1 {
			e.firstUnknown = l.Name
		}
	} else if len(l.Params) > 0 {
		e.known++
	}
	c.Step.Layer = l.Name
	return c
}

func (e *estimator) shape(i int) ops.Shape {
	l := &e.g.Layers[i]
	tokens, length := e.w.Tokens(l.Stream)
	s := ops.Shape{
		Tokens: tokens, Length: length, Batch: e.w.MicroBatch(),
		Cache: length + e.w.NewTokens, Logits: tokens,
		Train: e.w.Mode == costmodel.Train, Precision: e.compute, RotaryCopies: e.engine.rotaryCopies,
		NewGrads: e.grads[i].first, SecondGrads: e.grads[i].second, Weights: l.ParamCount(),
		HeadAlone: e.alone[i], Inputs: i == e.inputs,
		Attention: e.w.Attention, Loss: e.w.Loss, Recompute: e.recomputes(),
	}
	s.Adapters, s.Quantize = e.adapters[l], e.w.Quantize
	if e.w.NewTokens > 0 {
		s.Logits = s.Batch // generation projects the last position alone
	}
	s.Images, s.InputKept = e.w.Images > 0, e.keepsOutput(l)
	s.Scatter = s.Inputs && s.Images
	if e.frozen() {
		s.Frozen, s.InputGrad = true, e.inputGrad[i]
		s.Adapters16 = e.adapterCompute() == 2
		s.InputKept = s.InputKept || s.Recompute && e.entersUnit(i)
	}
	if in := l.InputLayers(); len(in) > 0 {
		s.Encoder, _ = e.w.Tokens(e.g.Layers[in[len(in)-1]].Stream)
	}
	return s
}

// declared lays the figures of the model file over the op's.
func (e *estimator) declared(c *ops.Cost, d *modelgraph.Declared, s *ops.Shape) {
	if d.ActivationBytes >= 0 || d.WorkspaceBytes >= 0 {
		act, work := max(0, d.ActivationBytes), max(0, d.WorkspaceBytes)
		c.Known = true
		c.Step.Forward = act + work
		if s.Train {
			c.Step.Saved = act
			c.Step.Backward, c.Step.BackwardGrads = work+s.NewGrads, s.NewGrads
			c.Step.Again = work + s.NewGrads
		}
	}
	if d.ParamsBytes >= 0 {
		c.Known = true
	}
	if s.Train {
		c.Step.Grads = s.NewGrads
		if c.Step.Backward < s.NewGrads {
			c.Step.Backward, c.Step.BackwardGrads = s.NewGrads, s.NewGrads
			c.Step.Again = s.NewGrads
		}
	}
	if d.OutputBytes >= 0 {
		c.Output = d.OutputBytes
	}
}

// outputs is what the model returns: the outputs that no layer reads.
func (e *estimator) outputs() int64 {
	read := make([]bool, len(e.g.Layers))
	for i := range e.g.Layers {
		for _, j := range e.g.Layers[i].InputLayers() {
			read[j] = true
		}
	}
	var n int64
	for i := range e.g.Layers {
		linear, _ := e.g.Layers[i].Op.(modelgraph.Linear)
		if _, rotary := e.g.Layers[i].Op.(modelgraph.Rotary); linear.Returned || !read[i] && !rotary {
			n += e.costs[i].Output
		}
	}
	return n
}
