package hf

import "github.com/devmap-dev/devmap/modelgraph"

// This file has the common parts of families older than Llama: LayerNorms with weight and bias,
// heads of equal width, positions in a table.

// equalHeads reads the number of heads under the given spellings. As in the framework, they must
// divide the hidden size.
func equalHeads(cfg *config, hidden, def int64, names ...string) modelgraph.Attention {
	heads := cfg.pos(def, names...)
	if hidden%heads != 0 {
		cfg.fail(cfg.pick(names), "%d heads do not divide the hidden size %d", heads, hidden)
	}
	return modelgraph.Attention{Dim: hidden, Heads: heads, KVHeads: heads, HeadDim: max(1, hidden/heads)}
}

// sizeProduct multiplies sizes and bounds the result like one; name is the field to blame.
func sizeProduct(cfg *config, name string, factors ...int64) int64 {
	count := int64(1)
	for _, factor := range factors {
		count = cfg.product(name, count, factor)
	}
	return count
}

// addLayerNorm adds nn.LayerNorm over dim with weight and bias, and returns its name.
func addLayerNorm(modules *builder, name string, dim int64, input string) string {
	op := modelgraph.Norm{Dim: dim, Style: modelgraph.LayerNorm, Epsilon: modules.epsilon}
	return modules.add(name, op, []string{input}, normParams("", dim, true)...).Name
}

// persists marks the last added norm: the model's forward keeps its result in a variable, after a
// dropout if it drops (modeling_bert.py, BertModel.forward: embedding_output).
func (modules *builder) persists(drops bool) {
	layer := &modules.layers[len(modules.layers)-1]
	if norm, ok := layer.Op.(modelgraph.Norm); ok {
		norm.Persists, norm.Dropout = true, norm.Dropout || drops
		layer.Op = norm
	}
}

// addTable adds an embedding table [rows, dim] whose rows are added to input, and returns its name.
// The first table of a model has no input.
func addTable(modules *builder, name string, rows, dim int64, input string) string {
	return addRows(modules, name, modelgraph.Embedding{Vocab: rows, Dim: dim}, input)
}

// addRows is addTable of the given table.
func addRows(modules *builder, name string, op modelgraph.Embedding, input string) string {
	return modules.add(name, op, []string{input}, tensor("weight", op.Vocab, op.Dim)).Name
}

// addVocabHead adds a projection of the hidden state to the vocabulary, its weight tied to the
// parameter named tied unless that is empty.
func addVocabHead(modules *builder, name string, dim, vocab int64, tied string) {
	addHead(modules, name, modelgraph.Head{Dim: dim, Vocab: vocab}, tied)
}

// addHead is [addVocabHead] with the class's operation on the logits.
func addHead(modules *builder, name string, op modelgraph.Head, tied string) {
	modules.add(name, op, []string{modules.hidden}, linearParams("", op.Dim, op.Vocab, false)...)
	if tied != "" {
		modules.tie(tied, dot(name, "weight"))
	}
}

// addClassHead adds a projection of input to classes, with bias. The loss of tokens is
// CrossEntropyLoss on the logits as they are (modeling_bert.py, BertForMaskedLM).
func addClassHead(modules *builder, name string, dim, classes int64, pooled bool, input string) {
	op := modelgraph.Head{Dim: dim, Vocab: classes, Pooled: pooled, OwnType: !pooled}
	modules.add(name, op, []string{input}, linearParams("", dim, classes, true)...)
}

// addDecoderTask adds the head of a decoder's task class, if class is one: score (no bias; of the
// last token), classifier, or qa_outputs (start, end).
func addDecoderTask(modules *builder, cfg *config, class string, dim int64) {
	switch {
	case isTask(class, sequenceClassification):
		count := cfg.labels()
		modules.add("score", modelgraph.Head{Dim: dim, Vocab: count, Pooled: true}, []string{modules.hidden}, linearParams("", dim, count, false)...)
	case isTask(class, tokenClassification):
		addClassHead(modules, "classifier", dim, cfg.labels(), false, modules.hidden)
	case isTask(class, questionAnswering):
		addClassHead(modules, "qa_outputs", dim, 2, false, modules.hidden)
	}
}
