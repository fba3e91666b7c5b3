package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"internlm2"},
		class:   "InternLM2ForCausalLM",
		classes: []string{"InternLM2ForCausalLM", "InternLM2Model", "InternLM2ForSequenceClassification"},
		build: func(b *builder, c *config, class string) {
			readInternLM2(c).build(b, c, class)
		},
	})
}

// internLM2 is the language model of InternLM2 and 2.5, as its checkpoints'
// own code has it (modeling_internlm2.py, loaded with trust_remote_code).
type internLM2 struct {
	hidden, vocab, layers int64

	attention, feedForward part
	tied                   bool
}

// readInternLM2 reads an InternLM2Config (configuration_internlm2.py).
func readInternLM2(c *config) *internLM2 {
	h, f := c.pos(4096, "hidden_size"), c.pos(11008, "intermediate_size")
	q := equalHeads(c, h, 32, "num_attention_heads")
	q.KVHeads = c.optional(q.Heads, "num_key_value_heads")
	if q.Heads%q.KVHeads != 0 {
		c.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", q.KVHeads, q.Heads)
	}
	q.Fused, q.Rope = true, true
	bias := c.bool(true, "bias")
	return &internLM2{
		hidden: h, vocab: c.pos(103168, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		tied: c.bool(false, "tie_word_embeddings"),
		attention: part{
			op:      q,
			params:  join(linear("wqkv", h, h+2*q.KVHeads*q.HeadDim, bias), linear("wo", h, h, bias)),
			buffers: []modelgraph.Tensor{buffer("rotary_emb.inv_freq", modelgraph.F32, (q.HeadDim+1)/2)},
		},
		feedForward: part{
			op:     modelgraph.MLP{Dim: h, Hidden: f, Gated: true, Activation: c.str("silu", "hidden_act")},
			params: join(linear("w1", h, f, false), linear("w3", h, f, false), linear("w2", f, h, false)),
		},
	}
}

// cached keeps the cosines and sines of every position in every layer, as
// the older copy of the code in InternVL's repositories does.
func (m *internLM2) cached(positions int64) {
	a, _ := m.attention.op.(modelgraph.Attention)
	m.attention.buffers = append(m.attention.buffers,
		tensor("rotary_emb.cos_cached", positions, a.HeadDim), tensor("rotary_emb.sin_cached", positions, a.HeadDim))
}

// build adds the modules of a class.
func (m *internLM2) build(b *builder, c *config, class string) {
	path := "model"
	if baseClass(class) {
		path = ""
	}
	m.stack(b, path)
	switch {
	case baseClass(class):
	case isTask(class, sequenceClassification):
		addDecoderTask(b, c, class, m.hidden)
	default:
		owner := ""
		if m.tied {
			owner = dot(path, "tok_embeddings.weight")
		}
		addVocabHead(b, "output", m.hidden, m.vocab, owner)
	}
}

// stack adds InternLM2Model at path; the blocks are a no-split class.
func (m *internLM2) stack(b *builder, path string) {
	b.hidden = addTable(b, dot(path, "tok_embeddings"), m.vocab, m.hidden, "")
	for i := range m.layers {
		name := indexed(dot(path, "layers"), i)
		b.unit(name, func() { m.block(b, name) })
	}
	b.hidden = m.norm(b, dot(path, "norm"), b.hidden)
}

// block adds an InternLM2DecoderLayer in the order it registers its modules.
func (m *internLM2) block(b *builder, name string) {
	attn, ffn := dot(name, "attention"), dot(name, "feed_forward")
	attnNorm, ffnNorm := dot(name, "attention_norm"), dot(name, "ffn_norm")
	residual := b.hidden
	b.add(attn, m.attention.op, []string{attnNorm, residual}, join(m.attention.params)...).Buffers = join(m.attention.buffers)
	b.add(ffn, m.feedForward.op, []string{ffnNorm, attn}, join(m.feedForward.params)...)
	m.norm(b, attnNorm, residual)
	m.norm(b, ffnNorm, attn)
	b.hidden = ffn
}

func (m *internLM2) norm(b *builder, name, input string) string {
	op := modelgraph.Norm{Dim: m.hidden, Style: modelgraph.RMSNorm}
	return b.add(name, op, []string{input}, tensor("weight", m.hidden)).Name
}
