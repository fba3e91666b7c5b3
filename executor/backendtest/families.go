// Package backendtest checks backends. Programs of every family, schedule and cut must make the
// same bits on several devices as on one. They must touch exactly the planned bytes of their
// arenas.
package backendtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// Families are small models of every family that the engine runs, as configs. They cover the
// families' features: grouped queries, biases, norms on q and k, windows, ties, fused projections,
// logits in parts.
var Families = map[string]string{
	"llama":       `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":96,"max_position_embeddings":64}`,
	"llama-tied":  `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":96,"attention_bias":true,"mlp_bias":true,"tie_word_embeddings":true}`,
	"llama-wide":  `{"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,"num_attention_heads":1,"vocab_size":8300,"tie_word_embeddings":true}`,
	"mistral":     `{"model_type":"mistral","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":96,"sliding_window":4}`,
	"qwen2":       `{"model_type":"qwen2","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":3,"num_key_value_heads":1,"vocab_size":90,"tie_word_embeddings":true}`,
	"qwen3":       `{"model_type":"qwen3","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":90}`,
	"gemma":       `{"model_type":"gemma","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":8,"vocab_size":90}`,
	"gemma2":      `{"model_type":"gemma2","hidden_size":24,"intermediate_size":40,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":90,"sliding_window":4}`,
	"gemma3_text": `{"model_type":"gemma3_text","hidden_size":24,"intermediate_size":40,"num_hidden_layers":6,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":90,"sliding_window":4,"sliding_window_pattern":3}`,
	"gemma3":      `{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":90},"vision_config":{"hidden_size":16,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":2,"image_size":28,"patch_size":14},"mm_tokens_per_image":4}`,
	"phi3":        `{"model_type":"phi3","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":3,"num_key_value_heads":1,"vocab_size":90,"pad_token_id":0}`,
	"gpt2":        `{"model_type":"gpt2","n_embd":24,"n_layer":2,"n_head":3,"n_positions":32,"vocab_size":90}`,
	"bert":        `{"model_type":"bert","hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":3,"vocab_size":90,"max_position_embeddings":32}`,
	"bert-pooled": `{"model_type":"bert","architectures":["BertModel"],"hidden_size":24,"intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":3,"vocab_size":90,"max_position_embeddings":32}`,
}

// Forwards reports whether a family neither trains nor generates.
func Forwards(family string) bool { return family == "bert" || family == "bert-pooled" }

// Graph returns the model of a config.
func Graph(config string) (*modelgraph.Graph, error) {
	if !strings.Contains(config, `"dtype"`) { // Transformers makes fp32 of a config that names no type
		config = `{"dtype":"bfloat16",` + config[1:]
	}
	dir, err := os.MkdirTemp("", "backendtest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	graph, err := load.Model(dir, load.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config, err)
	}
	return graph, nil
}
