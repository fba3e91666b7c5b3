package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"bert"},
		class: "BertForMaskedLM",
		classes: []string{
			"BertForMaskedLM", "BertModel", "BertForPreTraining", "BertLMHeadModel", "BertForNextSentencePrediction",
			"BertForSequenceClassification", "BertForMultipleChoice", "BertForTokenClassification", "BertForQuestionAnswering",
		},
		build:  func(b *builder, c *config, class string) { readBERT(c).build(b, c, class) },
		maxSeq: func(c *config) int64 { return c.pos(512, "max_position_embeddings") },
	})
}

// bert is configuration_bert.py: BertConfig.
type bert struct {
	hidden, vocab, positions, types, layers int64

	attention modelgraph.Attention
	mlp       modelgraph.MLP
	cross     bool // attention to an encoder that is not part of the model
	tied      bool
}

func readBERT(c *config) *bert {
	h := c.pos(768, "hidden_size")
	m := &bert{
		hidden: h, vocab: c.pos(30522, "vocab_size"),
		positions: c.pos(512, "max_position_embeddings"),
		types:     c.pos(2, "type_vocab_size"),
		layers:    c.count(12, "num_hidden_layers"),
		attention: equalHeads(c, h, 12, "num_attention_heads"),
		mlp:       modelgraph.MLP{Dim: h, Hidden: c.pos(3072, "intermediate_size"), Activation: c.str("gelu", "hidden_act")},
		cross:     c.bool(false, "add_cross_attention"),
		tied:      c.bool(true, "tie_word_embeddings"),
	}
	m.attention.Dropout = c.float(0.1, "hidden_dropout_prob") > 0
	m.mlp.Dropout = m.attention.Dropout
	decoder := c.bool(false, "is_decoder")
	m.attention.Bidirectional = !decoder
	if m.cross && !decoder {
		c.fail("add_cross_attention", "cross-attention needs is_decoder")
	}
	return m
}

func (m *bert) build(b *builder, c *config, class string) {
	path := "bert"
	if baseClass(class) {
		path = ""
	}
	m.embeddings(b, dot(path, "embeddings"))
	for i := range m.layers {
		name := indexed(dot(path, "encoder.layer"), i)
		b.unit(name, func() { m.block(b, name) })
	}
	pooled := m.pooler(b, path, class)
	switch class {
	case "BertForMaskedLM", "BertLMHeadModel":
		m.predictions(b)
	case "BertForPreTraining":
		m.predictions(b)
		addClassHead(b, "cls.seq_relationship", m.hidden, 2, true, pooled)
	case "BertForNextSentencePrediction":
		addClassHead(b, "cls.seq_relationship", m.hidden, 2, true, pooled)
	case "BertForSequenceClassification":
		addClassHead(b, "classifier", m.hidden, c.labels(), true, pooled)
	case "BertForMultipleChoice":
		addClassHead(b, "classifier", m.hidden, 1, true, pooled)
	case "BertForTokenClassification":
		addClassHead(b, "classifier", m.hidden, c.labels(), false, b.hidden)
	case "BertForQuestionAnswering":
		addClassHead(b, "qa_outputs", m.hidden, c.labels(), false, b.hidden)
	}
}

// pooler is modeling_bert.py: BertPooler, which the classes with a head for
// every token are made without. It returns the layer's name.
func (m *bert) pooler(b *builder, path, class string) string {
	switch class {
	case "BertForMaskedLM", "BertLMHeadModel", "BertForTokenClassification", "BertForQuestionAnswering":
		return ""
	}
	op := modelgraph.Linear{In: m.hidden, Out: m.hidden, Activation: "tanh", Pooled: true}
	b.empty(dot(path, "pooler.activation"))
	return b.add(dot(path, "pooler.dense"), op, []string{b.hidden}, linear("", m.hidden, m.hidden, true)...).Name
}
