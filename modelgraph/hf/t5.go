package hf

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

func init() {
	for kind, prefix := range map[string]string{"t5": "T5", "mt5": "MT5", "umt5": "UMT5"} {
		register(family{
			types: []string{kind}, table: true, class: prefix + "ForConditionalGeneration",
			classes: []string{
				prefix + "ForConditionalGeneration", prefix + "Model", prefix + "EncoderModel", prefix + "ForSequenceClassification", prefix + "ForTokenClassification", prefix + "ForQuestionAnswering",
			},
			build: func(modules *builder, cfg *config, class string) {
				model := readT5(cfg)
				model.tables = kind == "umt5" // modeling_umt5.py
				model.build(modules, cfg, strings.Replace(class, prefix, "T5", 1))
			},
			maxSeq: func(*config) int64 { return 0 },
		})
	}
}

// t5 is configuration_t5.py: T5Config.
type t5 struct {
	hidden, vocab, buckets       int64
	encoderLayers, decoderLayers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	tables    bool // every block has a table of relative positions, not the first alone (UMT5)
}

func readT5(cfg *config) *t5 {
	hidden := cfg.pos(512, "hidden_size", "d_model")
	heads := cfg.pos(8, "num_attention_heads", "num_heads")
	model := &t5{
		hidden: hidden, vocab: cfg.pos(32128, "vocab_size"),
		buckets:       cfg.pos(32, "relative_attention_num_buckets"),
		encoderLayers: cfg.count(6, "num_hidden_layers", "num_layers"),
		// The default, num_layers, is taken before the alias of num_layers is applied.
		decoderLayers: cfg.count(6, "num_layers"),
		attention: modelgraph.Attention{
			Dim: hidden, Heads: heads, KVHeads: heads, HeadDim: cfg.pos(64, "head_dim", "d_kv"),
			// Every attention gets a score-sized position bias, zero in cross-attention
			// (T5Attention.forward, sdpa_attention.py).
			Eager: true, ScoreBias: "relative", Unfused: true, BiasCopied: cfg.since("5.20"),
		},
		mlp: modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(2048, "d_ff")},
	}
	if cfg.has("num_decoder_layers") {
		model.decoderLayers = cfg.count(0, "num_decoder_layers")
	}
	cfg.product(cfg.pick([]string{"head_dim", "d_kv"}), heads, model.attention.HeadDim)
	model.mlp.Activation, model.mlp.Gated = t5Activation(cfg)
	model.mlp.Dropout = cfg.float(0.1, "dropout_rate") > 0
	model.attention.Dropout, model.mlp.InnerDropout = model.mlp.Dropout, model.mlp.Dropout
	model.attention.OwnScores, model.attention.InnerDropout = true, model.mlp.Dropout // eager_attention_forward
	return model
}

// t5Activation reads feed_forward_proj: "relu", or "gated-" and an activation.
func t5Activation(cfg *config) (name string, gated bool) {
	const field = "feed_forward_proj"
	proj := cfg.str("relu", field)
	act, gated := strings.CutPrefix(proj, "gated-")
	if act == "" || act == "gated" || strings.Contains(act, "-") {
		cfg.fail(field, "%q is neither an activation nor gated-<activation>", proj)
	}
	if !tables.Activation[act] {
		cfg.fail(field, tables.NoActivation, clipName(act), cfg.shared.in.Name)
	}
	if cfg.said("is_gated_act") && cfg.flag("is_gated_act") != gated {
		cfg.fail("is_gated_act", "%t contradicts %s %q: some releases of Transformers take one, some the other; make them agree", !gated, field, proj)
	}
	if proj == "gated-gelu" {
		act = "gelu_new"
	}
	return act, gated
}

func (model *t5) build(modules *builder, cfg *config, class string) {
	path := ""
	token := isTask(class, tokenClassification)
	if token || isTask(class, sequenceClassification) {
		path = "transformer"
	}
	shared := dot(path, "shared")
	// The table itself never runs: the stacks look up in theirs, tied to it.
	modules.add(shared, modelgraph.Parameter{}, nil, tensor("weight", model.vocab, model.hidden))
	tied := []string{dot(shared, "weight"), dot(path, "encoder.embed_tokens.weight")}
	if cfg.bool(false, "is_decoder") && (token || class == "T5EncoderModel") {
		cfg.fail("is_decoder", "true makes a decoder of the %s, which is not known here", class)
	}
	model.stack(modules, dot(path, "encoder"), model.encoderLayers, "")
	switch {
	case token:
		addClassHead(modules, "classifier", model.hidden, cfg.labels(), false, modules.hidden)
	case class != "T5EncoderModel":
		tied = append(tied, dot(path, "decoder.embed_tokens.weight"))
		encoder := modules.hidden
		modules.on(modelgraph.Stream{Kind: modelgraph.Target}, func() {
			model.stack(modules, dot(path, "decoder"), model.decoderLayers, encoder)
			model.head(modules, cfg, class)
		})
	}
	if class == "T5ForConditionalGeneration" {
		tied = append(tied, "lm_head.weight")
	}
	// tie_word_embeddings does not matter: T5Config forces it on.
	modules.tie(tied...)
	if class == "T5ForConditionalGeneration" && !cfg.bool(true, "tie_word_embeddings") {
		modules.warnings = append(modules.warnings, fmt.Sprintf("tie_word_embeddings is false, which T5Config overrides: from the config alone the head shares the embedding; files that hold lm_head.weight (T5 v1.1, Flan-T5) load it apart, %d parameters more", model.vocab*model.hidden))
	}
}

// head adds the modules after the decoder.
func (model *t5) head(modules *builder, cfg *config, class string) {
	switch class {
	case "T5ForConditionalGeneration":
		addHead(modules, "lm_head", modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, OwnType: true}, "")
	case "T5ForQuestionAnswering":
		addClassHead(modules, "qa_outputs", model.hidden, cfg.labels(), false, modules.hidden)
	case "T5ForSequenceClassification": // of the last token: T5ClassificationHead
		op := modelgraph.Linear{In: model.hidden, Out: model.hidden, Activation: "tanh", Pooled: true}
		dense := modules.add("classification_head.dense", op, []string{modules.hidden}, linearParams("", model.hidden, model.hidden, true)...).Name
		addClassHead(modules, "classification_head.out_proj", model.hidden, cfg.labels(), true, dense)
	}
}
