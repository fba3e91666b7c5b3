package hf

import "github.com/devmap-dev/devmap/modelgraph"

// stack is modeling_t5.py: T5Stack: an encoder, or a decoder that reads the layer named encoder.
func (model *t5) stack(modules *builder, path string, layers int64, encoder string) {
	table := modelgraph.Embedding{Vocab: model.vocab, Dim: model.hidden, Dropout: model.mlp.Dropout}
	modules.hidden = addRows(modules, dot(path, "embed_tokens"), table, "")
	for i := range layers {
		name := indexed(dot(path, "block"), i)
		modules.unit(name, func() { model.block(modules, name, i == 0, encoder) })
	}
	final := dot(path, "final_layer_norm")
	model.norm(modules, final, modules.hidden, model.mlp.Dropout)
	modules.empty(dot(path, "dropout"))
	modules.hidden = final
}

// block is modeling_t5.py: T5Block. The first one of a stack has the table of relative positions,
// in UMT5 every one.
func (model *t5) block(modules *builder, name string, first bool, encoder string) {
	self := model.attention
	self.Bidirectional, self.BiasMade, self.BiasOwn = encoder == "", first || model.tables, model.tables
	params := model.projections()
	if self.BiasMade {
		params = append(params, tensor("relative_attention_bias.weight", model.buckets, self.Heads))
	}
	model.sublayer(modules, dot(name, "layer.0"), "SelfAttention", self, "", params)
	ff := "layer.1"
	if encoder != "" {
		cross := model.attention
		cross.Cross, cross.BiasMade, cross.BiasOwn = true, first || model.tables, model.tables
		model.sublayer(modules, dot(name, "layer.1"), "EncDecAttention", cross, encoder, model.projections())
		ff = "layer.2"
	}
	model.sublayer(modules, dot(name, ff), "DenseReluDense", model.mlp, "", model.feedForward())
}

// sublayer is T5LayerSelfAttention, T5LayerCrossAttention or T5LayerFF: a part and, after it in
// module order, the norm before it.
func (model *t5) sublayer(modules *builder, path, component string, op modelgraph.Op, encoder string, params []modelgraph.Tensor) {
	name, norm := dot(path, component), dot(path, "layer_norm")
	modules.add(name, op, []string{norm, modules.hidden, encoder}, params...)
	model.norm(modules, norm, modules.hidden, false)
	modules.hidden = name
}

// norm is T5LayerNorm, which has no bias.
func (model *t5) norm(modules *builder, name, input string, dropout bool) {
	modules.add(name, modelgraph.Norm{Dim: model.hidden, Style: modelgraph.RMSNorm, OwnInput: true, Dropout: dropout}, []string{input}, tensor("weight", model.hidden))
}

// projections are T5Attention's, whose inner width may differ from the hidden size.
func (model *t5) projections() []modelgraph.Tensor {
	inner := model.attention.Heads * model.attention.HeadDim
	return join(
		linearParams("q", model.hidden, inner, false), linearParams("k", model.hidden, inner, false),
		linearParams("v", model.hidden, inner, false), linearParams("o", inner, model.hidden, false))
}

// feedForward is T5DenseActDense or T5DenseGatedActDense.
func (model *t5) feedForward() []modelgraph.Tensor {
	wo := linearParams("wo", model.mlp.Hidden, model.hidden, false)
	if !model.mlp.Gated {
		return join(linearParams("wi", model.hidden, model.mlp.Hidden, false), wo)
	}
	return join(
		linearParams("wi_0", model.hidden, model.mlp.Hidden, false),
		linearParams("wi_1", model.hidden, model.mlp.Hidden, false), wo)
}
