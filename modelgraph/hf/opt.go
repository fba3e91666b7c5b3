package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"opt"},
		class:   "OPTForCausalLM",
		classes: causalClasses("OPT", sequenceClassification, questionAnswering),
		build:   func(b *builder, c *config, class string) { readOPT(c).build(b, c, class) },
		maxSeq:  func(c *config) int64 { return c.pos(2048, "max_position_embeddings") },
	})
}

// opt is configuration_opt.py: OPTConfig.
type opt struct {
	hidden, vocab, positions, layers int64

	embed     int64 // width of the embeddings and of the last hidden state
	finalNorm bool
	block     fairseqBlock
	tied      bool
}

func readOPT(c *config) *opt {
	h := c.pos(768, "hidden_size")
	before := c.bool(true, "do_layer_norm_before")
	bias := c.bool(true, "enable_bias")
	attention := equalHeads(c, h, 12, "num_attention_heads")
	attention.Dropout = c.float(0.1, "dropout") > 0
	return &opt{
		hidden: h, vocab: c.pos(50272, "vocab_size"),
		positions: c.pos(2048, "max_position_embeddings"),
		layers:    c.count(12, "num_hidden_layers"),
		embed:     c.optional(h, "word_embed_proj_dim"),
		finalNorm: before && !c.bool(false, "_remove_final_layer_norm"),
		tied:      c.bool(true, "tie_word_embeddings"),
		block: fairseqBlock{
			attention: attention,
			mlp:       modelgraph.MLP{Dim: h, Hidden: c.pos(3072, "ffn_dim"), Activation: c.str("relu", "activation_function"), Dropout: attention.Dropout},
			bias:      bias, keyBias: bias, postNorm: !before,
			affine: c.bool(true, "layer_norm_elementwise_affine"),
		},
	}
}

func (m *opt) build(b *builder, c *config, class string) {
	path := "model.decoder"
	if baseClass(class) {
		path = "decoder"
	}
	m.stack(b, path)
	if class != "OPTForCausalLM" {
		addDecoderTask(b, c, class, m.embed)
		return
	}
	tied := ""
	if m.tied {
		tied = dot(path, "embed_tokens.weight")
	}
	addVocabHead(b, "lm_head", m.embed, m.vocab, tied)
}

// stack is modeling_opt.py: OPTDecoder. It registers what follows the blocks
// before them.
func (m *opt) stack(b *builder, path string) {
	embedded := addTable(b, dot(path, "embed_tokens"), m.vocab, m.embed, "")
	in, out, norm := dot(path, "project_in"), dot(path, "project_out"), dot(path, "final_layer_norm")
	projected := embedded
	if m.embed != m.hidden {
		projected = in
	}
	// OPTLearnedPositionalEmbedding has two rows more than positions.
	b.hidden = addTable(b, dot(path, "embed_positions"), m.positions+2, m.hidden, projected)
	last := b.hidden
	if m.layers > 0 {
		last = m.block.output(indexed(dot(path, "layers"), m.layers-1))
	}
	// A norm without weights outside the blocks is not a place that a device
	// map can name: it is left out.
	normed := last
	if m.finalNorm && m.block.affine {
		normed = norm
	}
	if m.embed != m.hidden {
		b.add(out, modelgraph.Linear{In: m.hidden, Out: m.embed}, []string{normed}, linear("", m.hidden, m.embed, false)...)
		b.add(in, modelgraph.Linear{In: m.embed, Out: m.hidden}, []string{embedded}, linear("", m.embed, m.hidden, false)...)
	}
	if normed == norm {
		addLayerNorm(b, norm, m.hidden, last)
	}
	for i := range m.layers {
		m.block.add(b, indexed(dot(path, "layers"), i))
	}
	b.hidden = normed
	if m.embed != m.hidden {
		b.hidden = out
	}
}
