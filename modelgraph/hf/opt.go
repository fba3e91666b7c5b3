package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"opt"},
		class:   "OPTForCausalLM",
		classes: causalClasses("OPT", sequenceClassification, questionAnswering),
		build:   func(modules *builder, cfg *config, class string) { readOPT(cfg).build(modules, cfg, class) },
		maxSeq:  func(cfg *config) int64 { return cfg.pos(2048, "max_position_embeddings") },
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

func readOPT(cfg *config) *opt {
	hidden := cfg.pos(768, "hidden_size")
	before := cfg.bool(true, "do_layer_norm_before")
	bias := cfg.bool(true, "enable_bias")
	attention := equalHeads(cfg, hidden, 12, "num_attention_heads")
	attention.Dropout = cfg.float(0.1, "dropout") > 0
	return &opt{
		hidden: hidden, vocab: cfg.pos(50272, "vocab_size"),
		positions: cfg.pos(2048, "max_position_embeddings"),
		layers:    cfg.count(12, "num_hidden_layers"),
		embed:     cfg.optional(hidden, "word_embed_proj_dim"),
		finalNorm: before && !cfg.bool(false, "_remove_final_layer_norm"),
		tied:      cfg.bool(true, "tie_word_embeddings"),
		block: fairseqBlock{
			attention: attention,
			mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(3072, "ffn_dim"), Activation: cfg.str("relu", "activation_function"), Dropout: attention.Dropout, Inline: true},
			bias:      bias, keyBias: bias, postNorm: !before,
			affine: cfg.bool(true, "layer_norm_elementwise_affine"),
		},
	}
}

func (model *opt) build(modules *builder, cfg *config, class string) {
	path := "model.decoder"
	if baseClass(class) {
		path = "decoder"
	}
	model.stack(modules, path)
	if class != "OPTForCausalLM" {
		addDecoderTask(modules, cfg, class, model.embed)
		return
	}
	tied := ""
	if model.tied {
		tied = dot(path, "embed_tokens.weight")
	}
	addVocabHead(modules, "lm_head", model.embed, model.vocab, tied)
}

// stack is modeling_opt.py: OPTDecoder. It registers the modules after the blocks before them.
func (model *opt) stack(modules *builder, path string) {
	embedded := addTable(modules, dot(path, "embed_tokens"), model.vocab, model.embed, "")
	in, out, norm := dot(path, "project_in"), dot(path, "project_out"), dot(path, "final_layer_norm")
	projected := embedded
	if model.embed != model.hidden {
		projected = in
	}
	// OPTLearnedPositionalEmbedding has two rows more than positions.
	modules.hidden = addRows(modules, dot(path, "embed_positions"), modelgraph.Embedding{Vocab: model.positions + 2, Dim: model.hidden, Persists: true}, projected)
	last := modules.hidden
	if model.layers > 0 {
		last = model.block.output(indexed(dot(path, "layers"), model.layers-1))
	}
	// A norm without weights outside the blocks cannot be named by a device map: it is left out.
	normed := last
	if model.finalNorm && model.block.affine {
		normed = norm
	}
	if model.embed != model.hidden {
		modules.add(out, modelgraph.Linear{In: model.hidden, Out: model.embed}, []string{normed}, linearParams("", model.hidden, model.embed, false)...)
		modules.add(in, modelgraph.Linear{In: model.embed, Out: model.hidden}, []string{embedded}, linearParams("", model.embed, model.hidden, false)...)
	}
	if normed == norm {
		addLayerNorm(modules, norm, model.hidden, last)
	}
	for i := range model.layers {
		model.block.add(modules, indexed(dot(path, "layers"), i))
	}
	modules.hidden = normed
	if model.embed != model.hidden {
		modules.hidden = out
	}
}
