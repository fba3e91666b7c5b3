package hf

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"t5"},
		class: "T5ForConditionalGeneration",
		classes: []string{
			"T5ForConditionalGeneration", "T5Model", "T5EncoderModel", "T5ForSequenceClassification",
			"T5ForTokenClassification", "T5ForQuestionAnswering",
		},
		build: func(b *builder, c *config, class string) { readT5(c).build(b, c, class) },
		// Relative positions: n_positions is a record of the training.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// t5 is configuration_t5.py: T5Config.
type t5 struct {
	hidden, vocab, buckets       int64
	encoderLayers, decoderLayers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	wo        modelgraph.DType // of wo.weight; noType: the model's
}

func readT5(c *config) *t5 {
	h := c.pos(512, "hidden_size", "d_model")
	heads := c.pos(8, "num_attention_heads", "num_heads")
	t := &t5{
		hidden: h, vocab: c.pos(32128, "vocab_size"),
		buckets:       c.pos(32, "relative_attention_num_buckets"),
		encoderLayers: c.count(6, "num_hidden_layers", "num_layers"),
		// The default, num_layers, is taken before the alias of num_layers is applied.
		decoderLayers: c.count(6, "num_layers"),
		attention: modelgraph.Attention{
			Dim: h, Heads: heads, KVHeads: heads, HeadDim: c.pos(64, "head_dim", "d_kv"),
			// Every attention gets a position bias as large as the scores, zero
			// in cross-attention (T5Attention.forward, sdpa_attention.py).
			Eager: true,
		},
		mlp: modelgraph.MLP{Dim: h, Hidden: c.pos(2048, "d_ff")},
	}
	if c.has("num_decoder_layers") {
		t.decoderLayers = c.count(0, "num_decoder_layers")
	}
	c.product(c.pick([]string{"head_dim", "d_kv"}), heads, t.attention.HeadDim)
	t.mlp.Activation, t.mlp.Gated = t5Activation(c)
	t.mlp.Dropout = c.float(0.1, "dropout_rate") > 0
	t.attention.Dropout = t.mlp.Dropout
	if d, _ := modelDType(c); d == modelgraph.F16 {
		t.wo = modelgraph.F32 // _keep_in_fp32_modules, which acts on fp16 only
	}
	return t
}

// t5Activation reads feed_forward_proj: "relu", or "gated-" and an activation.
func t5Activation(c *config) (name string, gated bool) {
	const field = "feed_forward_proj"
	proj := c.str("relu", field)
	act, gated := strings.CutPrefix(proj, "gated-")
	if act == "" || act == "gated" || strings.Contains(act, "-") {
		c.fail(field, "%q is neither an activation nor gated-<activation>", proj)
	}
	if proj == "gated-gelu" {
		act = "gelu_new"
	}
	return act, gated
}

func (t *t5) build(b *builder, c *config, class string) {
	path := ""
	token := isTask(class, tokenClassification)
	if token || isTask(class, sequenceClassification) {
		path = "transformer"
	}
	shared := dot(path, "shared")
	// The table itself never runs: the stacks look up in theirs, tied to it.
	b.add(shared, modelgraph.Opaque{}, nil, tensor("weight", t.vocab, t.hidden))
	tied := []string{dot(shared, "weight"), dot(path, "encoder.embed_tokens.weight")}
	if c.bool(false, "is_decoder") && (token || class == "T5EncoderModel") {
		c.fail("is_decoder", "true makes a decoder of the %s, which is not known here", class)
	}
	t.stack(b, dot(path, "encoder"), t.encoderLayers, "")
	switch {
	case token:
		addClassHead(b, "classifier", t.hidden, c.labels(), false, b.hidden)
	case class != "T5EncoderModel":
		tied = append(tied, dot(path, "decoder.embed_tokens.weight"))
		encoder := b.hidden
		b.on(modelgraph.Stream{Kind: modelgraph.Target}, func() {
			t.stack(b, dot(path, "decoder"), t.decoderLayers, encoder)
			t.head(b, c, class)
		})
	}
	if class == "T5ForConditionalGeneration" {
		tied = append(tied, "lm_head.weight")
	}
	// tie_word_embeddings does not matter: T5Config forces it on.
	b.tie(tied...)
	if class == "T5ForConditionalGeneration" && !c.bool(true, "tie_word_embeddings") {
		b.warnings = append(b.warnings, fmt.Sprintf("tie_word_embeddings is false, which T5Config overrides: from the config alone the head shares the embedding; files that hold lm_head.weight (T5 v1.1, Flan-T5) load it apart, %d parameters more", t.vocab*t.hidden))
	}
}

// head adds what follows the decoder.
func (t *t5) head(b *builder, c *config, class string) {
	switch class {
	case "T5ForConditionalGeneration":
		addVocabHead(b, "lm_head", t.hidden, t.vocab, "")
	case "T5ForQuestionAnswering":
		addClassHead(b, "qa_outputs", t.hidden, c.labels(), false, b.hidden)
	case "T5ForSequenceClassification": // of the last token: T5ClassificationHead
		op := modelgraph.Linear{In: t.hidden, Out: t.hidden, Activation: "tanh", Pooled: true}
		dense := b.add("classification_head.dense", op, []string{b.hidden}, linear("", t.hidden, t.hidden, true)...).Name
		addClassHead(b, "classification_head.out_proj", t.hidden, c.labels(), true, dense)
	}
}
