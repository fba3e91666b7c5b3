package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"modernbert"}, table: true, class: "ModernBertForMaskedLM",
		classes: []string{
			"ModernBertForMaskedLM", "ModernBertModel", "ModernBertForSequenceClassification", "ModernBertForTokenClassification",
			"ModernBertForQuestionAnswering", "ModernBertForMultipleChoice",
		},
		build: modernBERT,
	})
}

// modernBERT is modeling_modernbert.py: no norm before the first attention, windows in two of three
// layers, gate and up in one matrix.
func modernBERT(modules *builder, cfg *config, class string) {
	hidden := cfg.pos(0, "hidden_size")
	heads := equalHeads(cfg, hidden, 0, "num_attention_heads")
	bias, inner := cfg.flag("attention_bias"), cfg.pos(0, "intermediate_size")
	mlp := part{
		op:     modelgraph.MLP{Dim: hidden, Hidden: inner, Gated: true, Fused: true, Activation: cfg.str("", "hidden_activation"), Extra: 1},
		params: join(linearParams("Wi", hidden, 2*inner, cfg.flag("mlp_bias")), linearParams("Wo", inner, hidden, cfg.flag("mlp_bias"))),
	}
	model := &decoder{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), layers: cfg.count(0, "num_hidden_layers"), norm: modelgraph.LayerNorm, normBias: cfg.flag("norm_bias"),
		names: decoderNames{base: "model", embed: "embeddings.tok_embeddings", layers: "layers", norm: "final_norm"},
		ffn:   func(int64) part { return mlp },
	}
	global, window := cfg.pos(3, "global_attn_every_n_layers"), cfg.dim(0, "local_attention")
	types := layerTypes(cfg, model.layers, func(i int64) bool { return i%global != 0 })
	model.attention = func(i int64) part {
		op := heads
		op.Fused, op.Rope, op.Bidirectional, op.CastRotation = true, true, true, true
		if types[i] == slidingAttention {
			op.Window = window/2 + 1 // to each side
		}
		return part{op: op, params: join(linearParams("Wqkv", hidden, 3*hidden, bias), linearParams("Wo", hidden, hidden, bias))}
	}
	model.formAt = func(i int64) blockForm {
		form := blockForm{attnNorm: "attn_norm", attn: "attn", ffnNorm: "mlp_norm", ffn: "mlp", order: []string{"attn_norm", "attn", "mlp_norm", "mlp"}}
		if i == 0 {
			form.attnNorm, form.order = "", form.order[1:]
		}
		return form
	}
	model.rotary = typedRotary(heads.HeadDim, types)
	path := model.names.base
	if baseClass(class) {
		path = ""
	}
	modules.unit(dot(path, "embeddings"), func() {
		model.embed(modules, path)
		norm := dot(path, "embeddings.norm")
		model.addNorm(modules, norm, false, modules.hidden, "")
		modules.persists(cfg.float(0, "embedding_dropout") > 0)
		modules.hidden = norm
	})
	model.stack(modules, path)
	if !baseClass(class) {
		modernHead(modules, cfg, class, model)
	}
}

// modernHead is a dense layer, a norm, and the class's modules after them.
func modernHead(modules *builder, cfg *config, class string, model *decoder) {
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: cfg.str("", "classifier_activation")}
	op.Pooled = isTask(class, sequenceClassification) || isTask(class, "MultipleChoice")
	dense := modules.add("head.dense", op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, cfg.flag("classifier_bias"))...).Name
	modules.empty("head.act")
	model.addNorm(modules, "head.norm", false, dense, "")
	modules.hidden = "head.norm"
	switch {
	case class == "ModernBertForMaskedLM":
		head := modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, Body: model.hidden}
		modules.add("decoder", head, []string{modules.hidden}, linearParams("", model.hidden, model.vocab, cfg.flag("decoder_bias"))...)
		if cfg.bool(true, "tie_word_embeddings") {
			modules.tie("model.embeddings.tok_embeddings.weight", "decoder.weight")
		}
	case isTask(class, "MultipleChoice"):
		addClassHead(modules, "classifier", model.hidden, 1, true, modules.hidden)
	default:
		addClassHead(modules, "classifier", model.hidden, cfg.labels(), op.Pooled, modules.hidden)
	}
}
