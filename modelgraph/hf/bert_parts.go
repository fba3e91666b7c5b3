package hf

import "github.com/devmap-dev/devmap/modelgraph"

// embeddings is modeling_bert.py: BertEmbeddings, a no-split module. The
// word table goes by the module's name, which the buffers belong to.
func (m *bert) embeddings(b *builder, name string) {
	b.unit(name, func() {
		words := b.add(name, modelgraph.Embedding{Vocab: m.vocab, Dim: m.hidden}, nil,
			tensor("word_embeddings.weight", m.vocab, m.hidden))
		words.Buffers = []modelgraph.Tensor{
			buffer("position_ids", modelgraph.I64, 1, m.positions),
			buffer("token_type_ids", modelgraph.I64, 1, m.positions),
		}
		types := dot(name, "token_type_embeddings") // added before the positions
		positions := addTable(b, dot(name, "position_embeddings"), m.positions, m.hidden, types)
		addTable(b, types, m.types, m.hidden, name)
		b.hidden = addLayerNorm(b, dot(name, "LayerNorm"), m.hidden, positions)
	})
}

// block is modeling_bert.py: BertLayer. Norms follow the residual sum.
func (m *bert) block(b *builder, name string) {
	m.attend(b, dot(name, "attention"), m.attention)
	if m.cross {
		op := m.attention
		op.Cross = true
		m.attend(b, dot(name, "crossattention"), op)
	}
	b.add(name, m.mlp, []string{b.hidden, b.hidden}, join(
		linear("intermediate.dense", m.hidden, m.mlp.Hidden, true),
		linear("output.dense", m.mlp.Hidden, m.hidden, true))...)
	b.hidden = addLayerNorm(b, dot(name, "output.LayerNorm"), m.hidden, name)
}

// attend is modeling_bert.py: BertAttention.
func (m *bert) attend(b *builder, name string, op modelgraph.Attention) {
	h := m.hidden
	b.add(name, op, []string{b.hidden, b.hidden}, join(
		linear("self.query", h, h, true), linear("self.key", h, h, true),
		linear("self.value", h, h, true), linear("output.dense", h, h, true))...)
	b.hidden = addLayerNorm(b, dot(name, "output.LayerNorm"), h, name)
}

// predictions is modeling_bert.py: BertLMPredictionHead. Its bias is the
// decoder's under another name and does not run itself.
func (m *bert) predictions(b *builder) {
	const name, decoder = "cls.predictions", "cls.predictions.decoder"
	h := m.hidden
	b.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", m.vocab))
	op := modelgraph.Linear{In: h, Out: h, Activation: m.mlp.Activation}
	dense := b.add(dot(name, "transform.dense"), op, []string{b.hidden}, linear("", h, h, true)...).Name
	b.empty(dot(name, "transform.transform_act_fn"))
	normed := addLayerNorm(b, dot(name, "transform.LayerNorm"), h, dense)
	addClassHead(b, decoder, h, m.vocab, false, normed)
	if m.tied {
		b.tie("bert.embeddings.word_embeddings.weight", dot(decoder, "weight"))
		b.tie(dot(name, "bias"), dot(decoder, "bias"))
	}
}
