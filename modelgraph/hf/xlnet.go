package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"xlnet"}, table: true, class: "XLNetLMHeadModel",
		classes: []string{
			"XLNetLMHeadModel", "XLNetModel", "XLNetForSequenceClassification", "XLNetForMultipleChoice", "XLNetForTokenClassification", "XLNetForQuestionAnsweringSimple",
		},
		build:  xlnet,
		maxSeq: func(*config) int64 { return 0 }, // positions are relative
		unread: []string{"untie_r", "summary_first_dropout"},
	})
}

// xlnet is modeling_xlnet.py: relative positions have a separate projection. Scores have biases a
// head for them, for content and for segments.
func xlnet(modules *builder, cfg *config, class string) {
	hidden, vocab := cfg.pos(0, "d_model"), cfg.pos(0, "vocab_size")
	op := equalHeads(cfg, hidden, 0, "n_head")
	if cfg.has("d_head") && cfg.pos(0, "d_head") != op.HeadDim {
		cfg.fail("d_head", "%d is not d_model %d over %d heads", cfg.pos(0, "d_head"), hidden, op.Heads)
	}
	op.Bidirectional, op.Eager, op.ScoreBias, op.Dropout = true, true, "relative", cfg.float(0, "dropout") > 0
	model := &bert{hidden: hidden, mlp: modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(0, "d_inner"), Activation: cfg.str("gelu", "ff_activation"), Dropout: op.Dropout}}
	path, class := "transformer", class[len("XLNet"):]
	if class == "Model" {
		path = ""
	}
	modules.add(dot(path, "mask_emb"), modelgraph.Parameter{}, nil, tensor("", 1, 1, hidden)) // replaces the predicted tokens
	words := addTable(modules, dot(path, "word_embedding"), vocab, hidden, "")
	modules.hidden = words
	for i := range cfg.count(0, "n_layer") {
		name := indexed(dot(path, "layer"), i)
		modules.unit(name, func() { xlnetLayer(modules, name, op, model.mlp) })
	}
	switch class {
	case "LMHeadModel":
		addClassHead(modules, "lm_loss", hidden, vocab, false, modules.hidden)
		if cfg.bool(true, "tie_word_embeddings") {
			modules.tie(words+".weight", "lm_loss.weight")
		}
	case "ForSequenceClassification":
		addClassHead(modules, "logits_proj", hidden, cfg.labels(), true, model.summary(modules, cfg))
	case "ForMultipleChoice":
		addClassHead(modules, "logits_proj", hidden, 1, true, model.summary(modules, cfg))
	case "ForTokenClassification":
		addClassHead(modules, "classifier", hidden, cfg.labels(), false, modules.hidden)
	case "ForQuestionAnsweringSimple":
		addClassHead(modules, "qa_outputs", hidden, cfg.labels(), false, modules.hidden)
	}
}

// xlnetLayer is XLNetLayer, whose projections are bare parameters.
func xlnetLayer(modules *builder, name string, op modelgraph.Attention, mlp modelgraph.MLP) {
	hidden, heads, width := op.Dim, op.Heads, op.HeadDim
	attention, ff := dot(name, "rel_attn"), dot(name, "ff")
	var params []modelgraph.Tensor
	for _, matrix := range []string{"q", "k", "v", "o", "r"} {
		params = append(params, tensor(matrix, hidden, heads, width))
	}
	for _, bias := range []string{"r_r_bias", "r_s_bias", "r_w_bias"} {
		params = append(params, tensor(bias, heads, width))
	}
	modules.add(attention, op, []string{modules.hidden, modules.hidden}, append(params, tensor("seg_embed", 2, heads, width))...)
	middle := addLayerNorm(modules, dot(attention, "layer_norm"), hidden, attention)
	last := addLayerNorm(modules, dot(ff, "layer_norm"), hidden, ff)
	modules.add(ff, mlp, []string{middle, middle}, join(linearParams("layer_1", hidden, mlp.Hidden, true), linearParams("layer_2", mlp.Hidden, hidden, true))...)
	modules.hidden = last
}
