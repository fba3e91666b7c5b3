package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"bloom"},
		class:   "BloomForCausalLM",
		classes: causalClasses("Bloom", sequenceClassification, tokenClassification, questionAnswering),
		build:   func(modules *builder, cfg *config, class string) { readBloom(cfg).build(modules, cfg, class) },
		// ALiBi has no table of positions, so nothing bounds the sequence.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// bloom is configuration_bloom.py: BloomConfig.
type bloom struct {
	hidden, vocab, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	// normResidual: the residual is the normed state (apply_residual_connection_post_layernorm).
	normResidual bool
	tied         bool
}

func readBloom(cfg *config) *bloom {
	hidden := cfg.pos(64, "n_embed", "hidden_size")
	model := &bloom{
		hidden: hidden, vocab: cfg.pos(250880, "vocab_size"), layers: cfg.count(2, "num_hidden_layers", "n_layer"),
		attention: equalHeads(cfg, hidden, 8, "num_attention_heads", "n_head"),
		// BloomGelu is the tanh form as one function, which keeps its input only.
		mlp:          modelgraph.MLP{Dim: hidden, Hidden: 4 * hidden, Activation: "gelu_pytorch_tanh"},
		normResidual: cfg.bool(false, "apply_residual_connection_post_layernorm"),
		tied:         cfg.bool(true, "tie_word_embeddings"),
	}
	model.attention.Fused = true
	model.attention.ExtraScores = 2
	model.attention.Eager, model.attention.ScoreBias = true, "alibi" // ALiBi by baddbmm; the class has no SDPA path
	return model
}

func (model *bloom) build(modules *builder, cfg *config, class string) {
	path := "transformer"
	if baseClass(class) {
		path = ""
	}
	model.stack(modules, path)
	if class != "BloomForCausalLM" {
		addDecoderTask(modules, cfg, class, model.hidden)
		return
	}
	tied := ""
	if model.tied {
		tied = dot(path, "word_embeddings.weight")
	}
	addVocabHead(modules, "lm_head", model.hidden, model.vocab, tied)
}

// stack is modeling_bloom.py: BloomModel.
func (model *bloom) stack(modules *builder, path string) {
	modules.hidden = addTable(modules, dot(path, "word_embeddings"), model.vocab, model.hidden, "")
	modules.hidden = addLayerNorm(modules, dot(path, "word_embeddings_layernorm"), model.hidden, modules.hidden)
	for i := range model.layers {
		name := indexed(dot(path, "h"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	modules.hidden = addLayerNorm(modules, dot(path, "ln_f"), model.hidden, modules.hidden)
}

// block is modeling_bloom.py: BloomBlock.
func (model *bloom) block(modules *builder, name string) {
	hidden, inner := model.hidden, model.mlp.Hidden
	model.sublayer(modules, dot(name, "input_layernorm"), dot(name, "self_attention"), model.attention,
		join(linearParams("query_key_value", hidden, 3*hidden, true), linearParams("dense", hidden, hidden, true)))
	model.sublayer(modules, dot(name, "post_attention_layernorm"), dot(name, "mlp"), model.mlp,
		join(linearParams("dense_h_to_4h", hidden, inner, true), linearParams("dense_4h_to_h", inner, hidden, true)))
}

func (model *bloom) sublayer(modules *builder, norm, name string, op modelgraph.Op, params []modelgraph.Tensor) {
	residual := modules.hidden
	addLayerNorm(modules, norm, model.hidden, residual)
	if model.normResidual {
		residual = norm
	}
	modules.hidden = modules.add(name, op, []string{norm, residual}, params...).Name
}
