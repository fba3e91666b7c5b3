package hf_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// A config.json describes the whole structure: no weights are read.
func ExampleFromConfig() {
	graph, err := hf.FromConfig("config.json", []byte(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"],
		"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, unit := range graph.Units {
		fmt.Println(unit.Name)
	}
	fmt.Println(graph.ParamCount(), "parameters; tied:", graph.Ties[0])
	// Output:
	// model.embed_tokens
	// model.layers.0
	// model.layers.1
	// model.norm
	// model.rotary_emb
	// lm_head
	// 1436928 parameters; tied: [model.embed_tokens.weight lm_head.weight]
}

// An invalid config is refused with the field and its value.
func ExampleFromConfig_refused() {
	_, err := hf.FromConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 3}`))
	fmt.Println(err)
	// Output:
	// config.json: num_attention_heads: 3 does not divide hidden_size 256
}
