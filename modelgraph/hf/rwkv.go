package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"rwkv"}, table: true, class: "RwkvForCausalLM", classes: []string{"RwkvForCausalLM", "RwkvModel"},
		build:  rwkv,
		maxSeq: func(*config) int64 { return 0 }, // a recurrence
	})
}

// rwkv is modeling_rwkv.py (RWKV-4): a recurrence a channel, and a gated feed-forward.
func rwkv(modules *builder, cfg *config, class string) {
	path := "rwkv"
	if baseClass(class) {
		path = ""
	}
	hidden, vocab := cfg.pos(0, "hidden_size"), cfg.pos(0, "vocab_size")
	width := cfg.optional(hidden, "attention_hidden_size")
	inner := cfg.optional(4*hidden, "intermediate_size")
	modules.hidden = addTable(modules, dot(path, "embeddings"), vocab, hidden, "")
	embed := modules.hidden
	for i := range cfg.count(0, "num_hidden_layers") {
		name := indexed(dot(path, "blocks"), i)
		modules.unit(name, func() {
			if i == 0 {
				modules.hidden = addLayerNorm(modules, dot(name, "pre_ln"), hidden, modules.hidden)
			}
			rwkvBlock(modules, name, hidden, width, inner)
		})
	}
	modules.hidden = addLayerNorm(modules, dot(path, "ln_out"), hidden, modules.hidden)
	if baseClass(class) {
		return
	}
	tied := ""
	if cfg.bool(false, "tie_word_embeddings") {
		tied = dot(embed, "weight")
	}
	addVocabHead(modules, "head", hidden, vocab, tied)
}

// rwkvBlock is RwkvBlock, whose norms precede both parts.
func rwkvBlock(modules *builder, name string, hidden, width, inner int64) {
	attention, feedForward := dot(name, "attention"), dot(name, "feed_forward")
	residual := modules.hidden
	norm := addLayerNorm(modules, dot(name, "ln1"), hidden, residual)
	addLayerNorm(modules, dot(name, "ln2"), hidden, attention)
	mixer := modelgraph.StateSpace{Dim: hidden, Inner: width, State: 1, Heads: width, Chunk: 1}
	modules.add(attention, mixer, []string{norm, residual}, join([]modelgraph.Tensor{
		tensor("time_decay", width), tensor("time_first", width),
		tensor("time_mix_key", 1, 1, hidden), tensor("time_mix_value", 1, 1, hidden), tensor("time_mix_receptance", 1, 1, hidden),
	}, linearParams("key", hidden, width, false), linearParams("value", hidden, width, false),
		linearParams("receptance", hidden, width, false), linearParams("output", width, hidden, false))...)
	second := dot(name, "ln2")
	modules.add(feedForward, modelgraph.Parameter{}, nil, tensor("time_mix_key", 1, 1, hidden), tensor("time_mix_receptance", 1, 1, hidden))
	linear := func(module string, in, out int64, activation string, inputs ...string) string {
		op := modelgraph.Linear{In: in, Out: out, Activation: activation}
		return modules.add(dot(feedForward, module), op, inputs, linearParams("", in, out, false)...).Name
	}
	key := linear("key", hidden, inner, "relu2", second)
	gate := linear("receptance", hidden, hidden, "sigmoid", second)
	modules.hidden = linear("value", inner, hidden, "", key, gate, attention)
}
