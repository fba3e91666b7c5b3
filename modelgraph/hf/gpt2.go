package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"gpt2"},
		class: "GPT2LMHeadModel",
		classes: []string{
			"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel", "GPT2ForSequenceClassification",
			"GPT2ForTokenClassification", "GPT2ForQuestionAnswering",
		},
		build:  func(b *builder, c *config, class string) { readGPT2(c).build(b, c, class) },
		maxSeq: func(c *config) int64 { return c.pos(1024, "max_position_embeddings", "n_positions") },
	})
}

// gpt2 is configuration_gpt2.py: GPT2Config. Its attribute_map makes the
// common names win over the short ones where a config has both.
type gpt2 struct {
	hidden, vocab, positions, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	cross     bool // attention to an encoder that is not part of the model
	tied      bool
}

func readGPT2(c *config) *gpt2 {
	h := c.pos(768, "hidden_size", "n_embd")
	g := &gpt2{
		hidden: h, vocab: c.pos(50257, "vocab_size"),
		positions: c.pos(1024, "max_position_embeddings", "n_positions"),
		layers:    c.count(12, "num_hidden_layers", "n_layer"),
		attention: equalHeads(c, h, 12, "num_attention_heads", "n_head"),
		mlp:       modelgraph.MLP{Dim: h, Hidden: c.optional(4*h, "n_inner"), Activation: c.str("gelu_new", "activation_function")},
		cross:     c.bool(false, "add_cross_attention"),
		tied:      c.bool(true, "tie_word_embeddings"),
	}
	g.attention.Fused = true
	g.attention.Dropout = c.float(0.1, "resid_pdrop") > 0
	g.mlp.Dropout = g.attention.Dropout
	return g
}

func (g *gpt2) build(b *builder, c *config, class string) {
	path := "transformer"
	if class == "GPT2Model" {
		path = ""
	}
	g.stack(b, path)
	switch class {
	case "GPT2LMHeadModel", "GPT2DoubleHeadsModel":
		tied := ""
		if g.tied {
			tied = dot(path, "wte.weight")
		}
		addVocabHead(b, "lm_head", g.hidden, g.vocab, tied)
		if class == "GPT2DoubleHeadsModel" {
			g.summary(b, c)
		}
	default:
		addDecoderTask(b, c, class, g.hidden)
	}
}

// summary is modeling_gpt2.py: GPT2SequenceSummary, which reads one token.
// GPT2DoubleHeadsModel sets num_labels to 1.
func (g *gpt2) summary(b *builder, c *config) {
	const name = "multiple_choice_head.summary"
	if !c.bool(true, "summary_use_proj") {
		return
	}
	if c.bool(true, "summary_proj_to_labels") {
		addClassHead(b, name, g.hidden, 1, true, b.hidden)
		return
	}
	op := modelgraph.Linear{In: g.hidden, Out: g.hidden, Activation: c.name("summary_activation"), Pooled: true}
	b.add(name, op, []string{b.hidden}, linear("", g.hidden, g.hidden, true)...)
}

// stack is modeling_gpt2.py: GPT2Model.
func (g *gpt2) stack(b *builder, path string) {
	b.hidden = addTable(b, dot(path, "wte"), g.vocab, g.hidden, "")
	b.hidden = addTable(b, dot(path, "wpe"), g.positions, g.hidden, b.hidden)
	b.empty(dot(path, "drop"))
	for i := range g.layers {
		name := indexed(dot(path, "h"), i)
		b.unit(name, func() { g.block(b, name) })
	}
	b.hidden = addLayerNorm(b, dot(path, "ln_f"), g.hidden, b.hidden)
}

// block is modeling_gpt2.py: GPT2Block. The cross-attention stands behind
// ln_2 but runs before it.
func (g *gpt2) block(b *builder, name string) {
	h := g.hidden
	residual := b.hidden
	norm := addLayerNorm(b, dot(name, "ln_1"), h, residual)
	mixed := b.add(dot(name, "attn"), g.attention, []string{norm, residual},
		join(conv1D("c_attn", h, 3*h), conv1D("c_proj", h, h))...).Name
	crossNorm, cross := dot(name, "ln_cross_attn"), dot(name, "crossattention")
	self := mixed
	if g.cross {
		mixed = cross
	}
	norm = addLayerNorm(b, dot(name, "ln_2"), h, mixed)
	if g.cross {
		op := g.attention
		op.Cross, op.Fused = true, false
		b.add(cross, op, []string{crossNorm, self},
			join(conv1D("c_attn", h, 2*h), conv1D("q_attn", h, h), conv1D("c_proj", h, h))...)
		addLayerNorm(b, crossNorm, h, self)
	}
	b.hidden = b.add(dot(name, "mlp"), g.mlp, []string{norm, mixed},
		join(conv1D("c_fc", h, g.mlp.Hidden), conv1D("c_proj", g.mlp.Hidden, h))...).Name
}

// conv1D is pytorch_utils.py: Conv1D, a linear layer whose weight is stored
// as [in, out].
func conv1D(name string, in, out int64) []modelgraph.Tensor {
	return []modelgraph.Tensor{tensor(dot(name, "weight"), in, out), tensor(dot(name, "bias"), out)}
}
