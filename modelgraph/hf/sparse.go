package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"longformer"}, table: true, class: "LongformerForMaskedLM",
		classes: []string{
			"LongformerForMaskedLM", "LongformerModel", "LongformerForSequenceClassification", "LongformerForMultipleChoice",
			"LongformerForTokenClassification", "LongformerForQuestionAnswering",
		},
		build:  longformer,
		maxSeq: func(cfg *config) int64 { return cfg.pos(0, "max_position_embeddings") - cfg.orZero("pad_token_id") - 1 },
		unread: []string{"attention_mode", "ignore_attention_mask", "gradient_checkpointing"}, // of its authors' own code
	})
	register(family{
		types: []string{"big_bird"}, table: true, class: "BigBirdForPreTraining",
		classes: []string{
			"BigBirdForPreTraining", "BigBirdModel", "BigBirdForMaskedLM", "BigBirdForCausalLM", "BigBirdForSequenceClassification",
			"BigBirdForMultipleChoice", "BigBirdForTokenClassification", "BigBirdForQuestionAnswering",
		},
		build:  bigBird,
		unread: []string{"gradient_checkpointing", "position_embedding_type"},
	})
}

// longformer is modeling_longformer.py: a RoBERTa whose tokens see their neighbours, and a few
// global tokens with separate projections.
func longformer(modules *builder, cfg *config, class string) {
	model := readBERT(cfg)
	modules.epsilon = model.epsilon
	path, class := "longformer", class[len("Longformer"):]
	if class == "Model" {
		path = ""
	}
	embeddings := dot(path, "embeddings")
	modules.hidden = addTable(modules, dot(embeddings, "word_embeddings"), model.vocab, model.hidden, "")
	types, norm, positions := dot(embeddings, "token_type_embeddings"), dot(embeddings, "LayerNorm"), dot(embeddings, "position_embeddings")
	addRows(modules, types, modelgraph.Embedding{Vocab: model.types, Dim: model.hidden, Index: modelgraph.TypeIndex}, positions)
	addLayerNorm(modules, norm, model.hidden, types)
	addRows(modules, positions, modelgraph.Embedding{Vocab: model.positions, Dim: model.hidden, Index: modelgraph.PositionIndex}, modules.hidden)
	modules.join(len(modules.layers), dot(embeddings, "word_embeddings"), types, positions) // their rows are added in the forward of the embeddings
	modules.hidden = norm
	windows := longformerWindows(cfg, model.layers)
	if cfg.fault() != nil {
		return
	}
	for i, window := range windows {
		name := indexed(dot(path, "encoder.layer"), int64(i))
		global := slices.Contains([]string{"ForSequenceClassification", "ForMultipleChoice", "ForQuestionAnswering"}, class) // which always have global tokens
		modules.unit(name, func() { model.longformerBlock(modules, name, window, global) })
	}
	pooled := ""
	if class == "Model" || class == "ForMultipleChoice" {
		pooled = model.pooler(modules, path, "")
	}
	switch class {
	case "ForMaskedLM":
		model.lmHead(modules)
	case "ForSequenceClassification":
		dense := model.pooledLinear(modules, "classifier.dense", "tanh")
		addClassHead(modules, "classifier.out_proj", model.hidden, cfg.labels(), true, dense)
	default:
		model.taskHead(modules, cfg, class, pooled)
	}
}

// lmHead is LongformerLMHead, which has its bias twice.
func (model *bert) lmHead(modules *builder) {
	const name = "lm_head"
	modules.add(dot(name, "bias"), modelgraph.Opaque{}, nil, tensor("", model.vocab))
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "gelu"}
	dense := modules.add(dot(name, "dense"), op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
	normed := addLayerNorm(modules, dot(name, "layer_norm"), model.hidden, dense)
	addClassHead(modules, dot(name, "decoder"), model.hidden, model.vocab, false, normed)
	if model.tied {
		modules.tie("longformer.embeddings.word_embeddings.weight", dot(name, "decoder.weight"))
		modules.tie(dot(name, "bias"), dot(name, "decoder.bias"))
	}
}

// longformerWindows are the neighbours that a token of each layer sees: one number, or a list.
func longformerWindows(cfg *config, layers int64) []int64 {
	const name = "attention_window"
	windows := cfg.dims(name)
	if cfg.members[name].Kind() != '[' && len(windows) == 1 {
		windows = slices.Repeat(windows, int(layers))
	}
	if int64(len(windows)) != layers {
		cfg.fail(name, "%d windows for %d layers", len(windows), layers)
	}
	for _, window := range windows {
		if window < 2 || window%2 != 0 {
			cfg.fail(name, "%d is no even number of tokens", window)
		}
	}
	return windows
}

// longformerBlock is LongformerLayer. It materializes the scores of a window and the token itself
// (LongformerSelfAttention._sliding_chunks_query_key_matmul). Without global tokens, their
// projections do not run.
func (model *bert) longformerBlock(modules *builder, name string, window int64, global bool) {
	hidden, attention := model.hidden, dot(name, "attention")
	others := join(linearParams("self.query_global", hidden, hidden, true), linearParams("self.key_global", hidden, hidden, true), linearParams("self.value_global", hidden, hidden, true))
	if !global {
		others = frozen(others)
	}
	op := model.attention
	op.Eager, op.Packed, op.Window, op.ScoreBias = true, true, window+1, "global"
	modules.add(attention, op, []string{modules.hidden, modules.hidden}, join(
		linearParams("self.query", hidden, hidden, true), linearParams("self.key", hidden, hidden, true), linearParams("self.value", hidden, hidden, true),
		others, linearParams("output.dense", hidden, hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(attention, "output.LayerNorm"), hidden, attention)
	model.feedForward(modules, name)
}

// bigBird is modeling_big_bird.py: a BERT whose tokens see blocks of tokens.
func bigBird(modules *builder, cfg *config, class string) {
	model := readBERT(cfg)
	modules.epsilon = model.epsilon
	path, class := "bert", class[len("BigBird"):]
	if class == "Model" {
		path = ""
	}
	sparse := cfg.str("block_sparse", "attention_type")
	if sparse != "block_sparse" && sparse != "original_full" {
		cfg.fail("attention_type", "%q is not block_sparse or original_full", sparse)
	}
	model.tables(modules, dot(path, "embeddings"))
	model.attention.Eager = true
	if sparse == "block_sparse" {
		// Up to this length, tokens see all others (BigBirdModel.forward); beyond it, fewer.
		model.attention.Packed, model.attention.Window = true, sizeProduct(cfg, "block_size", 5+2*cfg.pos(0, "num_random_blocks"), cfg.pos(0, "block_size"))
	}
	bias := cfg.bool(true, "use_bias")
	for i := range model.layers {
		name := indexed(dot(path, "encoder.layer"), i)
		modules.unit(name, func() {
			model.bigBirdAttention(modules, dot(name, "attention"), model.attention, bias)
			if model.cross {
				op := model.attention
				op.Cross, op.Packed, op.Window = true, false, 0
				model.bigBirdAttention(modules, dot(name, "crossattention"), op, bias)
			}
			model.feedForward(modules, name)
		})
	}
	pooled := ""
	if class != "ForQuestionAnswering" { // heads for every token have one too, which they do not read
		pooled = model.pooledLinear(modules, dot(path, "pooler"), "tanh")
		if slices.Contains([]string{"ForMaskedLM", "ForCausalLM", "ForTokenClassification"}, class) {
			frozen(modules.layers[len(modules.layers)-1].Params)
		}
		modules.empty(dot(path, "activation"))
	}
	model.bigBirdHead(modules, cfg, class, pooled)
}

func (model *bert) bigBirdHead(modules *builder, cfg *config, class, pooled string) {
	switch class {
	case "ForMaskedLM", "ForCausalLM":
		model.predictions(modules, class == "ForCausalLM")
	case "ForPreTraining":
		model.predictions(modules, false)
		addClassHead(modules, "cls.seq_relationship", model.hidden, 2, true, pooled)
	case "ForSequenceClassification":
		dense := model.pooledLinear(modules, "classifier.dense", model.mlp.Activation)
		addClassHead(modules, "classifier.out_proj", model.hidden, cfg.labels(), true, dense)
	case "ForQuestionAnswering": // BigBirdForQuestionAnsweringHead
		inner := model.mlp.Hidden
		up := addLinear(modules, "qa_classifier.intermediate.dense", model.hidden, inner, model.mlp.Activation, modules.hidden)
		down := addLinear(modules, "qa_classifier.output.dense", inner, model.hidden, "", up)
		modules.hidden = addLayerNorm(modules, "qa_classifier.output.LayerNorm", model.hidden, down)
		addClassHead(modules, "qa_classifier.qa_outputs", model.hidden, cfg.labels(), false, modules.hidden)
	default:
		model.taskHead(modules, cfg, class, pooled)
	}
}

func (model *bert) bigBirdAttention(modules *builder, name string, op modelgraph.Attention, bias bool) {
	hidden := model.hidden
	modules.add(name, op, []string{modules.hidden, modules.hidden}, join(
		linearParams("self.query", hidden, hidden, bias), linearParams("self.key", hidden, hidden, bias),
		linearParams("self.value", hidden, hidden, bias), linearParams("output.dense", hidden, hidden, true))...)
	modules.hidden = addLayerNorm(modules, dot(name, "output.LayerNorm"), hidden, name)
}
