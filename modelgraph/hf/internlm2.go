package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"internlm2"},
		class:   "InternLM2ForCausalLM",
		classes: []string{"InternLM2ForCausalLM", "InternLM2Model", "InternLM2ForSequenceClassification"},
		build: func(modules *builder, cfg *config, class string) {
			readInternLM2(cfg).build(modules, cfg, class)
		},
	})
}

// internLM2 is the language model of InternLM2 and 2.5 in its checkpoints' code
// (modeling_internlm2.py, loaded with trust_remote_code).
type internLM2 struct {
	hidden, vocab, layers int64

	attention, feedForward part
	tied                   bool
}

// readInternLM2 reads an InternLM2Config (configuration_internlm2.py).
func readInternLM2(cfg *config) *internLM2 {
	hidden, inner := cfg.pos(4096, "hidden_size"), cfg.pos(11008, "intermediate_size")
	q := equalHeads(cfg, hidden, 32, "num_attention_heads")
	q.KVHeads = cfg.optional(q.Heads, "num_key_value_heads")
	if q.Heads%q.KVHeads != 0 {
		cfg.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", q.KVHeads, q.Heads)
	}
	q.Fused, q.Rope = true, true
	bias := cfg.bool(true, "bias")
	return &internLM2{
		hidden: hidden, vocab: cfg.pos(103168, "vocab_size"), layers: cfg.count(32, "num_hidden_layers"),
		tied: cfg.bool(false, "tie_word_embeddings"),
		attention: part{
			op:      q,
			params:  join(linearParams("wqkv", hidden, hidden+2*q.KVHeads*q.HeadDim, bias), linearParams("wo", hidden, hidden, bias)),
			buffers: []modelgraph.Tensor{buffer("rotary_emb.inv_freq", modelgraph.F32, (q.HeadDim+1)/2)},
		},
		feedForward: part{
			op:     modelgraph.MLP{Dim: hidden, Hidden: inner, Gated: true, Activation: cfg.str("silu", "hidden_act")},
			params: join(linearParams("w1", hidden, inner, false), linearParams("w3", hidden, inner, false), linearParams("w2", inner, hidden, false)),
		},
	}
}

// cached keeps the cosines and sines of every position in every layer, as the older copy of the
// code in InternVL's repositories does.
func (model *internLM2) cached(positions int64) {
	a, _ := model.attention.op.(modelgraph.Attention)
	model.attention.buffers = append(model.attention.buffers,
		tensor("rotary_emb.cos_cached", positions, a.HeadDim), tensor("rotary_emb.sin_cached", positions, a.HeadDim))
}

// build adds the modules of a class.
func (model *internLM2) build(modules *builder, cfg *config, class string) {
	path := "model"
	if baseClass(class) {
		path = ""
	}
	model.stack(modules, path)
	switch {
	case baseClass(class):
	case isTask(class, sequenceClassification):
		addDecoderTask(modules, cfg, class, model.hidden)
	default:
		owner := ""
		if model.tied {
			owner = dot(path, "tok_embeddings.weight")
		}
		addVocabHead(modules, "output", model.hidden, model.vocab, owner)
	}
}

// stack adds InternLM2Model at path; the blocks are a no-split class.
func (model *internLM2) stack(modules *builder, path string) {
	modules.hidden = addTable(modules, dot(path, "tok_embeddings"), model.vocab, model.hidden, "")
	for i := range model.layers {
		name := indexed(dot(path, "layers"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	modules.hidden = model.norm(modules, dot(path, "norm"), modules.hidden)
}

// block adds an InternLM2DecoderLayer in the order it registers its modules.
func (model *internLM2) block(modules *builder, name string) {
	attn, ffn := dot(name, "attention"), dot(name, "feed_forward")
	attnNorm, ffnNorm := dot(name, "attention_norm"), dot(name, "ffn_norm")
	residual := modules.hidden
	modules.add(attn, model.attention.op, []string{attnNorm, residual}, join(model.attention.params)...).Buffers = join(model.attention.buffers)
	modules.add(ffn, model.feedForward.op, []string{ffnNorm, attn}, join(model.feedForward.params)...)
	model.norm(modules, attnNorm, residual)
	model.norm(modules, ffnNorm, attn)
	modules.hidden = ffn
}

func (model *internLM2) norm(modules *builder, name, input string) string {
	op := modelgraph.Norm{Dim: model.hidden, Style: modelgraph.RMSNorm}
	return modules.add(name, op, []string{input}, tensor("weight", model.hidden)).Name
}
