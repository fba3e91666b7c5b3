package hf

import "github.com/devmap-dev/devmap/modelgraph"

// stack is modeling_t5.py: T5Stack: an encoder, or a decoder that reads the
// output of the layer named encoder.
func (t *t5) stack(b *builder, path string, layers int64, encoder string) {
	b.hidden = addTable(b, dot(path, "embed_tokens"), t.vocab, t.hidden, "")
	for i := range layers {
		name := indexed(dot(path, "block"), i)
		b.unit(name, func() { t.block(b, name, i == 0, encoder) })
	}
	final := dot(path, "final_layer_norm")
	t.norm(b, final, b.hidden)
	b.empty(dot(path, "dropout"))
	b.hidden = final
}

// block is modeling_t5.py: T5Block. The first one of a stack has the table
// of relative positions.
func (t *t5) block(b *builder, name string, first bool, encoder string) {
	self := t.attention
	self.Bidirectional = encoder == ""
	params := t.projections()
	if first {
		params = append(params, tensor("relative_attention_bias.weight", t.buckets, self.Heads))
	}
	t.sublayer(b, dot(name, "layer.0"), "SelfAttention", self, "", params)
	ff := "layer.1"
	if encoder != "" {
		cross := t.attention
		cross.Cross = true
		t.sublayer(b, dot(name, "layer.1"), "EncDecAttention", cross, encoder, t.projections())
		ff = "layer.2"
	}
	t.sublayer(b, dot(name, ff), "DenseReluDense", t.mlp, "", t.feedForward())
}

// sublayer is T5LayerSelfAttention, T5LayerCrossAttention or T5LayerFF: a
// part and, behind it in module order, the norm before it.
func (t *t5) sublayer(b *builder, path, part string, op modelgraph.Op, encoder string, params []modelgraph.Tensor) {
	name, norm := dot(path, part), dot(path, "layer_norm")
	b.add(name, op, []string{norm, b.hidden, encoder}, params...)
	t.norm(b, norm, b.hidden)
	b.hidden = name
}

// norm is T5LayerNorm, which has no bias.
func (t *t5) norm(b *builder, name, input string) {
	b.add(name, modelgraph.Norm{Dim: t.hidden, Style: modelgraph.RMSNorm}, []string{input}, tensor("weight", t.hidden))
}

// projections are those of T5Attention, whose inner width need not be the
// hidden size.
func (t *t5) projections() []modelgraph.Tensor {
	inner := t.attention.Heads * t.attention.HeadDim
	return join(
		linear("q", t.hidden, inner, false), linear("k", t.hidden, inner, false),
		linear("v", t.hidden, inner, false), linear("o", inner, t.hidden, false))
}

// feedForward is T5DenseActDense or T5DenseGatedActDense.
func (t *t5) feedForward() []modelgraph.Tensor {
	wo := buffer("wo.weight", t.wo, t.hidden, t.mlp.Hidden)
	if !t.mlp.Gated {
		return append(linear("wi", t.hidden, t.mlp.Hidden, false), wo)
	}
	return append(join(
		linear("wi_0", t.hidden, t.mlp.Hidden, false),
		linear("wi_1", t.hidden, t.mlp.Hidden, false)), wo)
}
