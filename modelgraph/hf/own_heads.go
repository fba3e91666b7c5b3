package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// ownHeads are types whose class ties the head if the config has no switch, and
// whose published checkpoints hold an lm_head.weight of their own, which
// Transformers then loads apart; by their names (issue 38, the checkpoints of 2025 and 2026).
var ownHeads = map[string]string{
	"mistral3": "Mistral-Small 3, Devstral 2 and Ministral 3 8B",
}

// tiedHeads are types whose text config ties by default too: whichever config
// counts, the head is tied (their configuration_*.py, the same from 5.17 to 5.24).
var tiedHeads = []string{"gemma3", "gemma3n", "gemma4", "gemma4_unified", "paligemma", "t5gemma2"}

// ownHead is the graph with a head of its own, where no file settles the tie and
// the published checkpoints do (a switch in text_config counts). If they do not,
// both answers are a note: models with a text model inside are saved with the
// switch there, and classes read their own.
func ownHead(graph *modelgraph.Graph, cfg *config) (*modelgraph.Graph, error) {
	text := cfg.sub("text_config")
	if !cfg.has("text_config") || cfg.said("tie_word_embeddings") || len(graph.Ties) == 0 || text.flag("tie_word_embeddings") || slices.Contains(tiedHeads, graph.Family) {
		return graph, nil
	}
	layers, tied := slices.Clone(graph.Layers), graph.ParamCount()
	for i := range layers {
		layers[i].Params = slices.Clone(layers[i].Params)
		for j := range layers[i].Params {
			layers[i].Params[j].Owner = ""
		}
	}
	out, err := relaid(graph, layers, nil)
	if err != nil {
		return nil, err
	}
	models, own := ownHeads[graph.Family], out.ParamCount()
	if models == "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("tie_word_embeddings is absent: "+fromConfigAlone+" the head is counted as tied, as the class's default, %d parameters; a checkpoint with a head of its own has %d: the folder with its safetensors files settles it", tied, own))
		return graph, nil
	}
	out.Warnings = append(slices.Clone(graph.Warnings), fmt.Sprintf("tie_word_embeddings is absent: "+fromConfigAlone+" the head is counted as its own, as in the published checkpoints of %s, %d parameters; tied, as the class's default, they are %d",
		models, own, tied))
	return out, nil
}
