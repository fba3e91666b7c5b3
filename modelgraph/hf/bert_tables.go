package hf

import "github.com/devmap-dev/devmap/modelgraph"

// tables are a BERT's embeddings without a common unit: each is a unit.
func (model *bert) tables(modules *builder, path string) {
	from := len(modules.layers)
	modules.hidden = addTable(modules, dot(path, "word_embeddings"), model.vocab, model.hidden, "")
	modules.hidden = addRows(modules, dot(path, "position_embeddings"), modelgraph.Embedding{Vocab: model.positions, Dim: model.hidden, Index: modelgraph.PositionIndex}, modules.hidden)
	modules.hidden = addRows(modules, dot(path, "token_type_embeddings"), modelgraph.Embedding{Vocab: model.types, Dim: model.hidden, Index: modelgraph.TypeIndex}, modules.hidden)
	modules.join(from) // their rows are added in the forward of the embeddings
	modules.hidden = addLayerNorm(modules, dot(path, "LayerNorm"), model.hidden, modules.hidden)
	modules.persists(model.mlp.Dropout)
	for _, name := range []string{"position_ids", "token_type_ids"} {
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
