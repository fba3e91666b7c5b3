package hf

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		runs:  true,
		types: []string{"bert"},
		class: "BertForMaskedLM",
		classes: []string{
			"BertForMaskedLM", "BertModel", "BertForPreTraining", "BertLMHeadModel", "BertForNextSentencePrediction",
			"BertForSequenceClassification", "BertForMultipleChoice", "BertForTokenClassification", "BertForQuestionAnswering",
		},
		build:  func(modules *builder, cfg *config, class string) { readBERT(cfg).build(modules, cfg, class) },
		maxSeq: func(cfg *config) int64 { return cfg.pos(512, "max_position_embeddings") },
	})
}

// bert is configuration_bert.py: BertConfig.
type bert struct {
	hidden, vocab, positions, types, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	cross     bool // attention to an encoder that is not part of the model
	tied      bool
	epsilon   float64
	padding   int64
}

func readBERT(cfg *config) *bert {
	hidden := cfg.pos(768, "hidden_size")
	model := &bert{
		hidden: hidden, vocab: cfg.pos(30522, "vocab_size"),
		positions: cfg.pos(512, "max_position_embeddings"),
		types:     cfg.pos(2, "type_vocab_size"),
		layers:    cfg.count(12, "num_hidden_layers"),
		attention: equalHeads(cfg, hidden, 12, "num_attention_heads"),
		mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(3072, "intermediate_size"), Activation: cfg.str("gelu", "hidden_act")},
		cross:     cfg.bool(false, "add_cross_attention"),
		tied:      cfg.bool(true, "tie_word_embeddings"),
	}
	model.epsilon, model.padding = cfg.number(1e-12, "layer_norm_eps"), cfg.padding(1, model.vocab)
	if kind, there := cfg.members["position_embedding_type"]; there && string(kind) != `"absolute"` {
		cfg.unsaid("position_embedding_type", "%s is not known here (known: absolute)", short(kind))
	}
	model.attention.Dropout = cfg.float(0.1, "hidden_dropout_prob") > 0
	model.mlp.Dropout = model.attention.Dropout
	// Of eager_attention_forward; SDPA's kernels keep neither.
	model.attention.OwnScores, model.attention.InnerDropout = true, cfg.float(0.1, "attention_probs_dropout_prob", "attention_dropout") > 0
	decoder := cfg.bool(false, "is_decoder")
	model.attention.Bidirectional = !decoder
	if model.cross && !decoder {
		cfg.fail("add_cross_attention", "cross-attention needs is_decoder")
	}
	return model
}

func (model *bert) build(modules *builder, cfg *config, class string) {
	path := "bert"
	modules.epsilon = model.epsilon
	if baseClass(class) {
		path = ""
	}
	model.embeddings(modules, dot(path, "embeddings"))
	for i := range model.layers {
		name := indexed(dot(path, "encoder.layer"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	pooled := model.pooler(modules, path, class)
	switch class {
	case "BertForMaskedLM", "BertLMHeadModel":
		model.predictions(modules, class == "BertLMHeadModel")
	case "BertForPreTraining":
		model.predictions(modules, false)
		addClassHead(modules, "cls.seq_relationship", model.hidden, 2, true, pooled)
	case "BertForNextSentencePrediction":
		addClassHead(modules, "cls.seq_relationship", model.hidden, 2, true, pooled)
	default:
		model.taskHead(modules, cfg, strings.TrimPrefix(class, "Bert"), pooled)
	}
}

// pooler is BertPooler, absent in classes with a head for every token. It returns the layer's name.
func (model *bert) pooler(modules *builder, path, class string) string {
	switch class {
	case "BertForMaskedLM", "BertLMHeadModel", "BertForTokenClassification", "BertForQuestionAnswering":
		return ""
	}
	op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "tanh", Pooled: true}
	modules.empty(dot(path, "pooler.activation"))
	return modules.add(dot(path, "pooler.dense"), op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
}
