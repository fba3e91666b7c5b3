package estimate

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// adapt finds the linear layers that get adapters.
func (e *estimator) adapt() {
	if e.w.LoRARank == 0 {
		return
	}
	e.adapters = make(map[*modelgraph.Layer][]ops.Adapter)
	e.cutBy = make(map[*modelgraph.Layer]int64)
	for i := range e.g.Layers {
		l := &e.g.Layers[i]
		for j := range l.Params {
			n, ok := e.linears[&l.Params[j]]
			if !ok || !targeted(e.w.LoRATargets, n) {
				continue
			}
			a := ops.Adapter{Module: n.below, In: n.in, Out: n.out, Rank: e.w.LoRARank}
			a.Output, a.Up = role(l.Op, n)
			e.adapters[l] = append(e.adapters[l], a)
		}
	}
	e.inputGrads()
}

// role says where a linear layer stands in its op.
func role(op modelgraph.Op, n linear) (output, up bool) {
	leaf := n.below[strings.LastIndexByte(n.below, '.')+1:]
	switch op := op.(type) {
	case modelgraph.Attention:
		return slices.Contains([]string{"o_proj", "out_proj", "wo", "proj", "projection_layer", "dense", "c_proj", "o"}, leaf), false
	case modelgraph.MLP:
		if op.Dim != op.Hidden {
			output = n.in == op.Hidden
		} else {
			output = slices.Contains([]string{"down_proj", "w2", "fc2", "wo", "c_proj", "dense_4h_to_h", "dense"}, leaf)
		}
		return output, slices.Contains([]string{"up_proj", "w3", "wi_1"}, leaf)
	}
	return false, false
}

// inputGrads finds the layers that gradients reach: those behind an adapter,
// and with checkpoints all behind the embedding, whose output is made to
// require one (PEFT: enable_input_require_grads).
func (e *estimator) inputGrads() {
	e.inputGrad = make([]bool, len(e.g.Layers))
	out := make([]bool, len(e.g.Layers))
	if e.recomputes() {
		if i := e.embedding(); i >= 0 {
			e.inputGrad[i], out[i] = true, true
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range e.g.Layers {
			l := &e.g.Layers[i]
			if _, rotary := l.Op.(modelgraph.Rotary); rotary || out[i] {
				continue
			}
			for _, j := range l.InputLayers() {
				e.inputGrad[i] = e.inputGrad[i] || out[j]
			}
			if e.inputGrad[i] || len(e.adapters[l]) > 0 {
				out[i], changed = true, true
			}
		}
	}
}

// embedding is the layer that embeds tokens, or -1.
func (e *estimator) embedding() int {
	return slices.IndexFunc(e.g.Layers, func(l modelgraph.Layer) bool {
		_, ok := l.Op.(modelgraph.Embedding)
		return ok && l.Stream.Kind == modelgraph.Text
	})
}

// frozen reports that the base takes no gradient.
func (e *estimator) frozen() bool { return e.w.LoRARank > 0 }

// entersUnit reports a layer that reads what enters a unit of several layers,
// which a checkpoint keeps.
func (e *estimator) entersUnit(i int) bool {
	l := &e.g.Layers[i]
	unit := &e.g.Units[l.UnitIndex()]
	in := l.InputLayers()
	return len(in) > 0 && len(unit.Exec) > 1 && (in[0] < unit.First || in[0] >= unit.End)
}
