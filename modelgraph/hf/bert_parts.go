package hf

import "github.com/devmap-dev/devmap/modelgraph"

// embeddings is modeling_bert.py: BertEmbeddings, a no-split module. The word table has the
// module's name, since the buffers belong to it.
func (model *bert) embeddings(modules *builder, name string) {
	modules.unit(name, func() {
		words := modules.add(name, modelgraph.Embedding{Vocab: model.vocab, Dim: model.hidden, Padding: model.padding}, nil,
			tensor("word_embeddings.weight", model.vocab, model.hidden))
		words.Buffers = []modelgraph.Tensor{
			buffer("position_ids", int64Type, 1, model.positions),
			buffer("token_type_ids", int64Type, 1, model.positions),
		}
		types := dot(name, "token_type_embeddings") // added before the positions
		positions := dot(name, "position_embeddings")
		addRows(modules, positions, modelgraph.Embedding{Vocab: model.positions, Dim: model.hidden, Index: modelgraph.PositionIndex}, types)
		addRows(modules, types, modelgraph.Embedding{Vocab: model.types, Dim: model.hidden, Index: modelgraph.TypeIndex}, name)
		modules.hidden = addLayerNorm(modules, dot(name, "LayerNorm"), model.hidden, positions)
		modules.persists(model.mlp.Dropout)
	})
}

// block is modeling_bert.py: BertLayer. Norms follow the residual sum.
func (model *bert) block(modules *builder, name string) {
	model.attend(modules, dot(name, "attention"), model.attention)
	if model.cross {
		op := model.attention
		op.Cross = true
		model.attend(modules, dot(name, "crossattention"), op)
	}
	model.feedForward(modules, name)
}

// feedForward is BertIntermediate and BertOutput.
func (model *bert) feedForward(modules *builder, name string) {
	modules.add(name, model.mlp, []string{modules.hidden, modules.hidden}, join(
		linearParams("intermediate.dense", model.hidden, model.mlp.Hidden, true),
		linearParams("output.dense", model.mlp.Hidden, model.hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(name, "output.LayerNorm"), model.hidden, name)
}

// attend is modeling_bert.py: BertAttention.
func (model *bert) attend(modules *builder, name string, op modelgraph.Attention) {
	hidden := model.hidden
	modules.add(name, op, []string{modules.hidden, modules.hidden}, join(
		linearParams("self.query", hidden, hidden, true), linearParams("self.key", hidden, hidden, true),
		linearParams("self.value", hidden, hidden, true), linearParams("output.dense", hidden, hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(name, "output.LayerNorm"), hidden, name)
}

// predictions is modeling_bert.py: BertLMPredictionHead. Its bias is the decoder's under another
// name and does not run itself. A causal class calls ForCausalLMLoss, which casts the logits to fp32 (loss_utils.py).
func (model *bert) predictions(modules *builder, causal bool) {
	const name, decoder = "cls.predictions", "cls.predictions.decoder"
	hidden := model.hidden
	modules.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", model.vocab))
	op := modelgraph.Linear{In: hidden, Out: hidden, Activation: model.mlp.Activation}
	dense := modules.add(dot(name, "transform.dense"), op, []string{modules.hidden}, linearParams("", hidden, hidden, true)...).Name
	modules.empty(dot(name, "transform.transform_act_fn"))
	normed := addLayerNorm(modules, dot(name, "transform.LayerNorm"), hidden, dense)
	addClassHead(modules, decoder, hidden, model.vocab, false, normed)
	if causal {
		modules.layers[len(modules.layers)-1].Op = modelgraph.Head{Dim: hidden, Vocab: model.vocab, Body: hidden}
	}
	if model.tied {
		modules.tie("bert.embeddings.word_embeddings.weight", dot(decoder, "weight"))
		modules.tie(dot(name, "bias"), dot(decoder, "bias"))
	}
}
