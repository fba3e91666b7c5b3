package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// ownHeads are types whose class ties the head if the config has no switch, while its text_config's
// class does not (Transformers 5.17 to 5.24). The values are published checkpoints with a separate
// lm_head.weight, which Transformers then loads. "" means that no checkpoint is known.
var ownHeads = map[string]string{
	"mistral3": "Mistral-Small 3, Devstral 2 and Ministral 3 8B", "kimi_k25": "",
	"deepseek_vl": "", "deepseek_vl_hybrid": "", "glmasr": "", "granite_speech": "", "granite_speech_plus": "",
	"internvl": "", "janus": "", "lighton_ocr": "", "ovis2": "",
}

// ownHead is the graph with a separate head, if no file settles the tie and the published
// checkpoints do (a switch in text_config counts). Otherwise a note has both answers: models with a
// text model inside are saved with the switch there, and classes read their own.
func ownHead(graph *modelgraph.Graph, cfg *config) (*modelgraph.Graph, error) {
	models, unsettled := ownHeads[graph.Family]
	if !unsettled || cfg.said("tie_word_embeddings") || len(graph.Ties) == 0 || cfg.sub("text_config").flag("tie_word_embeddings") {
		return graph, nil
	}
	out, err := relaid(graph, graph.Layers, nil)
	if err != nil {
		return nil, err
	}
	tied := graph.ParamCount()
	note := fmt.Sprintf("the head is counted as its own, as in the published checkpoints of %s, %d parameters; tied, as the class's default, they are %d", models, out.ParamCount(), tied)
	if models == "" {
		note = fmt.Sprintf("the head is counted as tied, as the class's default, %d parameters; with a head of its own they are %d", tied, out.ParamCount())
		own := *graph
		out = &own
	}
	out.Warnings = append(slices.Clone(graph.Warnings), "tie_word_embeddings is absent: "+fromConfigAlone+" "+note+"; tie_word_embeddings true or false in config.json, or the folder, settles it")
	return out, nil
}
