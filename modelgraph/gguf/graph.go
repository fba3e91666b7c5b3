package gguf

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// block is the beginning of the name of a tensor in a numbered part of the model.
var block = regexp.MustCompile(`^((?:[a-z_]+\.)*[a-z_]*(?:blk|layer)s?\.(\d{1,5}))\.`)

const (
	embeddingName = "token_embd"
	outputName    = "output"
)

// Input reports whether a tensor belongs to the inputs, which llama.cpp keeps on the CPU
// (llama-arch.cpp, LLM_TENSOR_LAYER_INPUT).
func Input(name string) bool {
	return slices.Contains([]string{embeddingName, "token_types", "position_embd", "token_embd_norm", "per_layer_token_embd"}, layerOf(name))
}

// Block is the number of the block that a tensor lies in, or -1.
func Block(name string) int64 {
	rest, found := strings.CutPrefix(name, "blk.")
	number, _, dotted := strings.Cut(rest, ".")
	if n, err := strconv.ParseInt(number, 10, 32); found && dotted && err == nil && n >= 0 {
		return n
	}
	return -1
}

// layerOf is the module of a tensor: its block, or its name without "weight".
func layerOf(name string) string {
	if parts := block.FindStringSubmatch(name); parts != nil {
		return parts[1]
	}
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return name[:dot]
	}
	return name
}

// Graph returns the model as a graph of its blocks: their bytes, and not what they compute. A
// missing output is the embedding's table. Without general.name it has the name of the file.
func (file *File) Graph() (*modelgraph.Graph, error) {
	base := filepath.Base(file.Path)
	name := cmp.Or(file.Text("general.name"), strings.TrimSuffix(base, filepath.Ext(base)))
	var layers []modelgraph.Layer
	places := make(map[string]int)
	add := func(layer string) *modelgraph.Layer {
		place, known := places[layer]
		if !known {
			place = len(layers)
			places[layer] = place
			layers = append(layers, modelgraph.Layer{Name: layer})
		}
		return &layers[place]
	}
	ordered := slices.Clone(file.Tensors)
	slices.SortStableFunc(ordered, func(one, other modelgraph.Tensor) int { return cmp.Compare(rank(one.Name), rank(other.Name)) })
	for _, tensor := range ordered {
		layer := add(layerOf(tensor.Name))
		tensor.Name = strings.TrimPrefix(strings.TrimPrefix(tensor.Name, layer.Name), ".")
		layer.Params = append(layer.Params, tensor)
	}
	var ties [][]string
	_, own := places[outputName]
	if at, embeds := places[embeddingName]; embeds && !own && file.Has("block_count") {
		shared := layers[at].Params[0]
		shared.Parts = nil
		layers = append(layers, modelgraph.Layer{Name: outputName, Params: []modelgraph.Tensor{shared}})
		ties = [][]string{{modelgraph.FullName(embeddingName, shared.Name), modelgraph.FullName(outputName, shared.Name)}}
	}
	graph, err := modelgraph.New(name, layers, ties)
	if err != nil {
		return nil, file.fault("", "the tensors make no model: %v", err)
	}
	graph.Family, graph.MaxSeq, graph.Quantized = file.Architecture, max(0, file.Number("context_length", 0)), "gguf"
	graph.Unknown = []string{"a GGUF file: its layers are known by their sizes alone"}
	return graph, nil
}

// rank orders tensors as the model runs: inputs, blocks by their number, the rest.
func rank(name string) int64 {
	number := Block(name)
	switch {
	case Input(name):
		return -1
	case number >= 0:
		return number
	case layerOf(name) == outputName:
		return 1 << 33
	}
	return 1 << 32
}
