package tables

import (
	"cmp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// store gives a layer the operation of a bare parameter if it only holds a tied matrix. The forward calls it
// in no build: it has no operation, reads nothing, and nothing reads it. So is the token table of
// encoder–decoder models: their stacks look up in tables of their own (modeling_bart.py: BartModel, shared).
func (op *operating) store() {
	tied, read := make(map[string]bool), make(map[string]bool)
	for name, owner := range op.ties {
		tied[name], tied[owner] = true, true
	}
	for i := range op.layers {
		for _, name := range op.layers[i].Inputs {
			read[name] = true
		}
	}
	for i := range op.layers {
		layer := &op.layers[i]
		if layer.Op != (modelgraph.Opaque{}) || layer.Declared != nil || len(layer.Inputs) > 0 || read[layer.Name] || len(layer.Params) != 1 {
			continue
		}
		if table := layer.Params[0]; len(table.Shape) == 2 && tied[modelgraph.FullName(layer.Name, table.Name)] {
			layer.Op = modelgraph.Parameter{}
		}
	}
}

// rest makes unused layers see no token, so that they get no gradients. A module is unused if no
// layer has an operation, reads, is read or is tied, and one has a matrix (a tower). Biases of a
// head run without an operation.
func (op *operating) rest() {
	reached, matrix := make(map[string]bool), make(map[string]bool)
	up := func(set map[string]bool, names ...string) {
		for _, at := range names {
			for ; at != ""; at = paths.Parent(at) {
				set[at] = true
			}
		}
	}
	for i := range op.layers {
		layer := &op.layers[i]
		if _, bare := layer.Op.(modelgraph.Parameter); !bare && layer.Op != (modelgraph.Opaque{}) || layer.Declared != nil || len(layer.Inputs) > 0 || layer.Stream.Kind != modelgraph.Text {
			up(reached, layer.Name)
		}
		up(reached, layer.Inputs...)
		if slices.ContainsFunc(layer.Params, func(t modelgraph.Tensor) bool { return len(t.Shape) > 1 }) {
			up(matrix, layer.Name)
		}
	}
	for name, owner := range op.ties {
		up(reached, paths.Parent(name), paths.Parent(owner))
	}
	for i := range op.layers {
		layer := &op.layers[i]
		for at := layer.Name; at != "" && !reached[at]; at = paths.Parent(at) {
			if matrix[at] {
				layer.Op, layer.Stream = modelgraph.Parameter{}, modelgraph.Stream{Kind: modelgraph.Fixed}
				op.still = cmp.Or(op.still, layer.Name)
			}
		}
	}
}

// freeze freezes parameters if the layer's forward keeps gradients from them. MRA's attention
// gives zeros without its kernel package (modeling_mra.py, mra2_attention). An indexer runs without
// gradients (modeling_glm_moe_dsa.py, GlmMoeDsaIndexer). A language model's head reads no pooler.
// A decoder alone does not call its attention to an encoder.
func (op *operating) freeze() {
	for i := range op.layers {
		layer := &op.layers[i]
		layer.Params = slices.Clone(layer.Params)
		idle := layer.Op == (modelgraph.Opaque{}) && layer.Declared == nil && len(layer.Inputs) == 0 && strings.Contains(layer.Name, ".encoder_attn")
		if idle {
			layer.Op, layer.Stream = modelgraph.Parameter{}, modelgraph.Stream{Kind: modelgraph.Fixed}
		}
		for j := range layer.Params {
			param := &layer.Params[j]
			name := "." + modelgraph.FullName(layer.Name, param.Name)
			param.Frozen = param.Frozen || idle || strings.Contains(name, ".indexer.") || op.line.Config == "MraConfig" && strings.Contains(name, ".attention.self.") ||
				strings.HasSuffix(op.line.Class, "LM") && strings.Contains(name, ".pooler.")
		}
	}
}
