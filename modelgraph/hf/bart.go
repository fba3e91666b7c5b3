package hf

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"bart"}, table: true, class: "BartForConditionalGeneration",
		classes: []string{"BartForConditionalGeneration", "BartModel", "BartForSequenceClassification", "BartForQuestionAnswering", "BartForCausalLM"},
		build:   func(modules *builder, cfg *config, class string) { readBart(cfg).build(modules, cfg, class) },
	})
	register(family{
		types: []string{"mt5"}, table: true, class: "MT5ForConditionalGeneration",
		classes: []string{
			"MT5ForConditionalGeneration", "MT5Model", "MT5EncoderModel", "MT5ForSequenceClassification", "MT5ForTokenClassification", "MT5ForQuestionAnswering",
		},
		build:  func(modules *builder, cfg *config, class string) { readT5(cfg).build(modules, cfg, class[1:]) },
		maxSeq: func(*config) int64 { return 0 },
	})
	register(family{
		types: []string{"umt5"}, table: true, class: "UMT5ForConditionalGeneration",
		classes: []string{
			"UMT5ForConditionalGeneration", "UMT5Model", "UMT5EncoderModel", "UMT5ForSequenceClassification", "UMT5ForTokenClassification", "UMT5ForQuestionAnswering",
		},
		build:  umt5,
		maxSeq: func(*config) int64 { return 0 },
	})
}

// umt5 is modeling_umt5.py.
func umt5(modules *builder, cfg *config, class string) {
	model := readT5(cfg)
	model.tables = true
	model.build(modules, cfg, strings.TrimPrefix(class, "UM"))
}

// bart is configuration_bart.py: BartConfig.
type bart struct {
	hidden, vocab, positions     int64
	encoderLayers, decoderLayers int64
	encoder, decoder             fairseqBlock
	scaled, tied                 bool
}

func readBart(cfg *config) *bart {
	hidden := cfg.pos(0, "d_model")
	block := func(heads, inner string) fairseqBlock {
		op := equalHeads(cfg, hidden, 0, heads)
		op.Dropout = cfg.float(0, "dropout") > 0
		op.OwnScores, op.InnerDropout = true, cfg.has("attention_dropout") && cfg.float(0, "attention_dropout") > 0
		mlp := modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(0, inner), Activation: cfg.str("", "activation_function"), Dropout: op.Dropout}
		return fairseqBlock{attention: op, mlp: mlp, bias: true, keyBias: true, affine: true, postNorm: true}
	}
	model := &bart{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), positions: cfg.pos(0, "max_position_embeddings"),
		encoderLayers: cfg.count(0, "encoder_layers"), decoderLayers: cfg.count(0, "decoder_layers"),
		encoder: block("encoder_attention_heads", "encoder_ffn_dim"), decoder: block("decoder_attention_heads", "decoder_ffn_dim"),
		scaled: cfg.flag("scale_embedding"), tied: cfg.bool(true, "tie_word_embeddings"),
	}
	model.encoder.attention.Bidirectional, model.decoder.cross = true, true
	return model
}

// build adds the modules of a class (modeling_bart.py).
func (model *bart) build(modules *builder, cfg *config, class string) {
	if class == "BartForCausalLM" { // the encoder's output comes from outside
		model.stack(modules, "model.decoder", model.decoderLayers, model.decoder)
		tied := ""
		if model.tied {
			tied = "model.decoder.embed_tokens.weight"
		}
		addHead(modules, "lm_head", modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, OwnType: true}, tied)
		return
	}
	path := "model"
	if baseClass(class) {
		path = ""
	}
	shared := dot(path, "shared")
	// The table itself never runs: the stacks look up in theirs, tied to it.
	modules.add(shared, modelgraph.Opaque{}, nil, tensor("weight", model.vocab, model.hidden))
	tied := []string{dot(shared, "weight"), dot(path, "encoder.embed_tokens.weight"), dot(path, "decoder.embed_tokens.weight")}
	model.stack(modules, dot(path, "encoder"), model.encoderLayers, model.encoder)
	model.decoder.encoder = modules.hidden
	modules.on(modelgraph.Stream{Kind: modelgraph.Target}, func() {
		model.stack(modules, dot(path, "decoder"), model.decoderLayers, model.decoder)
		switch class {
		case "BartForConditionalGeneration":
			modules.add("final_logits_bias", modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{tensor("", 1, model.vocab)}
			addHead(modules, "lm_head", modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, Scaled: true, OwnType: true}, "")
			tied = append(tied, "lm_head.weight")
		case "BartForQuestionAnswering":
			addClassHead(modules, "qa_outputs", model.hidden, 2, false, modules.hidden)
		case "BartForSequenceClassification": // of the last token
			op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "tanh", Pooled: true}
			dense := modules.add("classification_head.dense", op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
			count := int64(3) // BartConfig's own default
			if cfg.has("num_labels") || cfg.has("id2label") {
				count = cfg.labels()
			}
			addClassHead(modules, "classification_head.out_proj", model.hidden, count, true, dense)
		}
	})
	if model.tied {
		modules.tie(tied...)
	}
}

// stack is BartEncoder or BartDecoder, whose norm of the embeddings follows the blocks; positions
// have two rows more than there are.
func (model *bart) stack(modules *builder, path string, layers int64, block fairseqBlock) {
	embedded := addRows(modules, dot(path, "embed_tokens"), modelgraph.Embedding{Vocab: model.vocab, Dim: model.hidden, Scaled: model.scaled}, "")
	places := addRows(modules, dot(path, "embed_positions"), modelgraph.Embedding{Vocab: model.positions + 2, Dim: model.hidden, Index: modelgraph.PositionIndex, Persists: true}, embedded)
	norm := dot(path, "layernorm_embedding")
	modules.hidden = norm
	for i := range layers {
		block.add(modules, indexed(dot(path, "layers"), i))
	}
	last := modules.hidden
	op := modelgraph.Norm{Dim: model.hidden, Style: modelgraph.LayerNorm, Epsilon: modules.epsilon, Dropout: block.mlp.Dropout}
	modules.add(norm, op, []string{places}, normParams("", model.hidden, true)...)
	modules.hidden = last
}
