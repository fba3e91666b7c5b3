package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// family is one kind of model, with the built-in config of it.
type family struct {
	name, config string
	text         bool // only the config's text model
	infers       bool // it does not train
}

var families = []family{
	{name: "llama", config: "llama-3.1-8b"},
	{name: "llama, tied", config: "llama-3.2-1b"},
	{name: "mistral", config: "mistral-7b-v0.1"},
	{name: "qwen2", config: "qwen2.5-0.5b"},
	{name: "qwen3", config: "qwen3-8b"},
	{name: "gemma", config: "gemma-2b"},
	{name: "gemma2", config: "gemma-2-9b"},
	{name: "gemma3", config: "gemma-3-27b"},
	{name: "gemma3_text", config: "gemma-3-27b", text: true},
	{name: "phi3", config: "phi-3-mini"},
	{name: "gpt2", config: "gpt2"},
	{name: "bert", config: "bert-large", infers: true},
}

// graph reads the family's config with so many layers; a vision tower gets as many.
func (family *family) graph(layers int) (*modelgraph.Graph, error) {
	data, err := fs.ReadFile(fixtures.Models(), family.config+"/config.json")
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", family.config, err)
	}
	if text, ok := config["text_config"].(map[string]any); ok && family.text {
		config = text
		config["architectures"], config["torch_dtype"] = []string{"Gemma3ForCausalLM"}, "bfloat16"
	}
	for _, part := range []any{config, config["text_config"], config["vision_config"]} {
		for _, field := range []string{"num_hidden_layers", "n_layer"} {
			if object, ok := part.(map[string]any); ok && object[field] != nil {
				object[field] = layers
			}
		}
	}
	return written(config)
}

// written returns the graph of a config.
func written(config map[string]any) (*modelgraph.Graph, error) {
	folder, err := os.MkdirTemp("", "figures")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "config.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	return load.Model(file, load.Options{})
}
