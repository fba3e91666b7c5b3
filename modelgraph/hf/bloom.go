package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"bloom"},
		class:   "BloomForCausalLM",
		classes: causalClasses("Bloom", sequenceClassification, tokenClassification, questionAnswering),
		build:   func(b *builder, c *config, class string) { readBloom(c).build(b, c, class) },
		// ALiBi has no table of positions, so nothing bounds the sequence.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// bloom is configuration_bloom.py: BloomConfig.
type bloom struct {
	hidden, vocab, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	// normResidual: the residual is the normed state
	// (apply_residual_connection_post_layernorm).
	normResidual bool
	tied         bool
}

func readBloom(c *config) *bloom {
	h := c.pos(64, "n_embed", "hidden_size")
	m := &bloom{
		hidden: h, vocab: c.pos(250880, "vocab_size"), layers: c.count(2, "num_hidden_layers", "n_layer"),
		attention: equalHeads(c, h, 8, "num_attention_heads", "n_head"),
		// BloomGelu is the tanh form as one function, which keeps its input only.
		mlp:          modelgraph.MLP{Dim: h, Hidden: 4 * h, Activation: "gelu_pytorch_tanh"},
		normResidual: c.bool(false, "apply_residual_connection_post_layernorm"),
		tied:         c.bool(true, "tie_word_embeddings"),
	}
	m.attention.Fused = true
	m.attention.Eager = true // ALiBi by baddbmm; the class has no SDPA path
	return m
}

func (m *bloom) build(b *builder, c *config, class string) {
	path := "transformer"
	if baseClass(class) {
		path = ""
	}
	m.stack(b, path)
	if class != "BloomForCausalLM" {
		addDecoderTask(b, c, class, m.hidden)
		return
	}
	tied := ""
	if m.tied {
		tied = dot(path, "word_embeddings.weight")
	}
	addVocabHead(b, "lm_head", m.hidden, m.vocab, tied)
}

// stack is modeling_bloom.py: BloomModel.
func (m *bloom) stack(b *builder, path string) {
	b.hidden = addTable(b, dot(path, "word_embeddings"), m.vocab, m.hidden, "")
	b.hidden = addLayerNorm(b, dot(path, "word_embeddings_layernorm"), m.hidden, b.hidden)
	for i := range m.layers {
		name := indexed(dot(path, "h"), i)
		b.unit(name, func() { m.block(b, name) })
	}
	b.hidden = addLayerNorm(b, dot(path, "ln_f"), m.hidden, b.hidden)
}

// block is modeling_bloom.py: BloomBlock.
func (m *bloom) block(b *builder, name string) {
	h, f := m.hidden, m.mlp.Hidden
	m.sublayer(b, dot(name, "input_layernorm"), dot(name, "self_attention"), m.attention,
		join(linear("query_key_value", h, 3*h, true), linear("dense", h, h, true)))
	m.sublayer(b, dot(name, "post_attention_layernorm"), dot(name, "mlp"), m.mlp,
		join(linear("dense_h_to_4h", h, f, true), linear("dense_4h_to_h", f, h, true)))
}

func (m *bloom) sublayer(b *builder, norm, name string, op modelgraph.Op, params []modelgraph.Tensor) {
	residual := b.hidden
	addLayerNorm(b, norm, m.hidden, residual)
	if m.normResidual {
		residual = norm
	}
	b.hidden = b.add(name, op, []string{norm, residual}, params...).Name
}
