package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"mamba"},
		class:   "MambaForCausalLM",
		classes: causalClasses("Mamba"),
		unread:  []string{"use_mambapy"},
		build:   func(b *builder, c *config, class string) { readMamba(c).build(b, class) },
		// A recurrence: nothing bounds the sequence.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// mamba is configuration_mamba.py: MambaConfig.
type mamba struct {
	hidden, vocab, layers int64

	mixer          modelgraph.StateSpace
	bias, convBias bool
	tied           bool
}

func readMamba(c *config) *mamba {
	h := c.pos(768, "hidden_size")
	m := &mamba{
		hidden: h, vocab: c.pos(50280, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		mixer: modelgraph.StateSpace{
			Dim: h, State: c.pos(16, "state_size"), Kernel: c.pos(4, "conv_kernel"), DtRank: timeStepRank(c, h),
		},
		bias: c.bool(false, "use_bias"), convBias: c.bool(true, "use_conv_bias"),
		tied: c.bool(true, "tie_word_embeddings"),
	}
	// intermediate_size is no field of MambaConfig, but sets the attribute.
	if c.has("intermediate_size") {
		m.mixer.Inner = c.pos(0, "intermediate_size")
	} else {
		m.mixer.Inner = c.product("expand", c.pos(2, "expand"), h)
	}
	return m
}

// timeStepRank reads a number or "auto": a 16th of the hidden size, rounded up.
func timeStepRank(c *config, hidden int64) int64 {
	const name = "time_step_rank"
	if c.has(name) && c.m[name].Kind() == '"' {
		if s := c.str("", name); s != "auto" {
			c.fail(name, "%q is neither a size nor \"auto\"", s)
		}
		return (hidden + 15) / 16
	}
	return c.pos((hidden+15)/16, name)
}

func (m *mamba) build(b *builder, class string) {
	path := "backbone"
	if baseClass(class) {
		path = ""
	}
	embed := addTable(b, dot(path, "embeddings"), m.vocab, m.hidden, "")
	b.hidden = embed
	for i := range m.layers {
		name := indexed(dot(path, "layers"), i)
		b.unit(name, func() { m.block(b, name) })
	}
	b.hidden = m.norm(b, dot(path, "norm_f"))
	if baseClass(class) {
		return
	}
	tied := ""
	if m.tied {
		tied = dot(embed, "weight")
	}
	addVocabHead(b, "lm_head", m.hidden, m.vocab, tied)
}

// block is modeling_mamba.py: MambaBlock, MambaMixer.
func (m *mamba) block(b *builder, name string) {
	residual := b.hidden
	norm := m.norm(b, dot(name, "norm"))
	biased := map[string]bool{"conv1d": m.convBias, "in_proj": m.bias, "out_proj": m.bias}
	params := modelgraph.Params(m.mixer, func(linear string) bool { return biased[linear] })
	b.hidden = b.add(dot(name, "mixer"), m.mixer, []string{norm, residual}, params...).Name
}

func (m *mamba) norm(b *builder, name string) string {
	op := modelgraph.Norm{Dim: m.hidden, Style: modelgraph.RMSNorm}
	return b.add(name, op, []string{b.hidden}, tensor("weight", m.hidden)).Name
}
