package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"electra"}, table: true, class: "ElectraForPreTraining",
		classes: []string{
			"ElectraForPreTraining", "ElectraModel", "ElectraForMaskedLM", "ElectraForCausalLM", "ElectraForSequenceClassification",
			"ElectraForMultipleChoice", "ElectraForTokenClassification", "ElectraForQuestionAnswering",
		},
		build: electra,
	})
	register(family{
		types: []string{"distilbert"}, table: true, class: "DistilBertForMaskedLM",
		classes: []string{
			"DistilBertForMaskedLM", "DistilBertModel", "DistilBertForSequenceClassification", "DistilBertForMultipleChoice",
			"DistilBertForTokenClassification", "DistilBertForQuestionAnswering",
		},
		build: distilBERT,
		// A field of configs that Transformers 2 saved; no class reads it.
		unread: []string{"tie_weights_"}, // as above
	})
}

// narrow is a BERT whose embeddings may be narrower than its layers.
type narrow struct {
	*bert
	width int64
}

// narrowBERT reads a config that has embedding_size.
func narrowBERT(cfg *config) *narrow {
	return &narrow{bert: readBERT(cfg), width: cfg.pos(0, "embedding_size")}
}

// tables are a BERT's embeddings without a common unit: each is a unit.
func (model *narrow) tables(modules *builder, path string, types bool) {
	from := len(modules.layers)
	modules.hidden = addTable(modules, dot(path, "word_embeddings"), model.vocab, model.width, "")
	places := []string{"position_ids"}
	modules.hidden = addRows(modules, dot(path, "position_embeddings"), modelgraph.Embedding{Vocab: model.positions, Dim: model.width, Index: modelgraph.PositionIndex}, modules.hidden)
	if types {
		modules.hidden = addRows(modules, dot(path, "token_type_embeddings"), modelgraph.Embedding{Vocab: model.types, Dim: model.width, Index: modelgraph.TypeIndex}, modules.hidden)
		places = append(places, "token_type_ids")
	}
	modules.join(from) // their rows are added in the forward of the embeddings
	modules.hidden = addLayerNorm(modules, dot(path, "LayerNorm"), model.width, modules.hidden)
	modules.persists(model.mlp.Dropout)
	for _, name := range places {
		modules.add(dot(path, name), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{buffer("", int64Type, 1, model.positions)}
	}
}

// taskHead is the head of a task's class that is a matrix alone.
func (model *bert) taskHead(modules *builder, cfg *config, class, pooled string) {
	switch class {
	case "ForSequenceClassification":
		addClassHead(modules, "classifier", model.hidden, cfg.labels(), true, pooled)
	case "ForMultipleChoice":
		addClassHead(modules, "classifier", model.hidden, 1, true, pooled)
	case "ForTokenClassification":
		addClassHead(modules, "classifier", model.hidden, cfg.labels(), false, modules.hidden)
	case "ForQuestionAnswering":
		addClassHead(modules, "qa_outputs", model.hidden, cfg.labels(), false, modules.hidden)
	}
}

// pooledLinear is a matrix of the first token.
func (model *bert) pooledLinear(modules *builder, name, activation string) string {
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: activation, Pooled: true}
	return modules.add(name, op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
}

// electra is modeling_electra.py: a BERT with narrow embeddings and different heads.
func electra(modules *builder, cfg *config, class string) {
	model := narrowBERT(cfg)
	modules.epsilon = model.epsilon
	path := "electra"
	if baseClass(class) {
		path = ""
	}
	model.tables(modules, dot(path, "embeddings"), true)
	if model.width != model.hidden {
		modules.hidden = addLinear(modules, dot(path, "embeddings_project"), model.width, model.hidden, "", modules.hidden)
		modules.replaces() // hidden_states (ElectraModel.forward)
	}
	for i := range model.layers {
		name := indexed(dot(path, "encoder.layer"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	switch class {
	case "ElectraForPreTraining": // whether each token is the text's own
		dense := addLinear(modules, "discriminator_predictions.dense", model.hidden, model.hidden, model.mlp.Activation, modules.hidden)
		addClassHead(modules, "discriminator_predictions.dense_prediction", model.hidden, 1, false, dense)
	case "ElectraForMaskedLM", "ElectraForCausalLM":
		const norm, dense, head = "generator_predictions.LayerNorm", "generator_predictions.dense", "generator_lm_head"
		addLayerNorm(modules, norm, model.width, dense)
		addLinear(modules, dense, model.hidden, model.width, "gelu", modules.hidden)
		addClassHead(modules, head, model.width, model.vocab, false, norm)
		if model.tied {
			modules.tie("electra.embeddings.word_embeddings.weight", head+".weight")
		}
	case "ElectraForSequenceClassification":
		dense := model.pooledLinear(modules, "classifier.dense", "gelu")
		addClassHead(modules, "classifier.out_proj", model.hidden, cfg.labels(), true, dense)
	case "ElectraForMultipleChoice":
		addClassHead(modules, "classifier", model.hidden, 1, true, model.summary(modules, cfg))
	default:
		model.taskHead(modules, cfg, class[len("Electra"):], "")
	}
}

// summary is ElectraSequenceSummary, which may be no matrix.
func (model *bert) summary(modules *builder, cfg *config) string {
	if cfg.str("first", "summary_type") == "attn" {
		cfg.fail("summary_type", "attn is not implemented in Transformers")
	}
	if cfg.has("summary_proj_to_labels") && cfg.flag("summary_proj_to_labels") {
		cfg.fail("summary_proj_to_labels", "true does not fit the head behind it")
	}
	if !cfg.flag("summary_use_proj") {
		return modules.hidden
	}
	return model.pooledLinear(modules, "sequence_summary.summary", "gelu")
}

// distilBERT is modeling_distilbert.py: a BERT of no token types, with other names.
func distilBERT(modules *builder, cfg *config, class string) {
	hidden := cfg.pos(0, "dim")
	model := &narrow{width: hidden, bert: &bert{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), positions: cfg.pos(0, "max_position_embeddings"), layers: cfg.count(0, "n_layers"),
		attention: equalHeads(cfg, hidden, 0, "n_heads"),
		mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(0, "hidden_dim"), Activation: cfg.str("gelu", "activation"), Dropout: cfg.float(0, "dropout") > 0},
		tied:      cfg.bool(true, "tie_word_embeddings"),
	}}
	model.attention.Bidirectional, model.attention.OwnScores = true, true
	model.attention.InnerDropout = cfg.float(0, "attention_dropout") > 0
	modules.epsilon = 1e-12
	path := "distilbert"
	if baseClass(class) {
		path = ""
	}
	model.tables(modules, dot(path, "embeddings"), false)
	for i := range model.layers {
		name := indexed(dot(path, "transformer.layer"), i)
		modules.unit(name, func() { model.distilBlock(modules, name) })
	}
	switch class {
	case "DistilBertForMaskedLM":
		dense := addLinear(modules, "vocab_transform", hidden, hidden, model.mlp.Activation, modules.hidden)
		norm := addLayerNorm(modules, "vocab_layer_norm", hidden, dense)
		addClassHead(modules, "vocab_projector", hidden, model.vocab, false, norm)
		if model.tied {
			modules.tie("distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight")
		}
	case "DistilBertForSequenceClassification", "DistilBertForMultipleChoice":
		model.taskHead(modules, cfg, class[len("DistilBert"):], model.pooledLinear(modules, "pre_classifier", "relu"))
	default:
		model.taskHead(modules, cfg, class[len("DistilBert"):], "")
	}
}

// distilBlock is TransformerBlock.
func (model *narrow) distilBlock(modules *builder, name string) {
	hidden, attention, ffn := model.hidden, dot(name, "attention"), dot(name, "ffn")
	modules.add(attention, model.attention, []string{modules.hidden, modules.hidden}, join(
		linearParams("q_lin", hidden, hidden, true), linearParams("k_lin", hidden, hidden, true),
		linearParams("v_lin", hidden, hidden, true), linearParams("out_lin", hidden, hidden, true))...)
	normed := addLayerNorm(modules, dot(name, "sa_layer_norm"), hidden, attention)
	modules.add(ffn, model.mlp, []string{normed, normed}, join(
		linearParams("lin1", hidden, model.mlp.Hidden, true), linearParams("lin2", model.mlp.Hidden, hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(name, "output_layer_norm"), hidden, ffn)
}
