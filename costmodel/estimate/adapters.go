package estimate

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/modelgraph"
)

// maxRank keeps sizes far from overflow.
const maxRank = 1 << 16

// A usual rank, and PEFT's shorthand for every linear layer but the head.
var (
	usualRank = costmodel.Set("lora_rank", "16")
	allLinear = costmodel.Set("lora_targets", "all-linear")
)

// loraDefaults are PEFT's targets where none are given
// (peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING).
var loraDefaults = map[string]string{
	"t5": "q,v", "gpt2": "c_attn", "bloom": "query_key_value", "falcon": "query_key_value", "bert": "query,value",
	"opt": "q_proj,v_proj", "bart": "q_proj,v_proj", "llama": "q_proj,v_proj", "mistral": "q_proj,v_proj",
	"mixtral": "q_proj,v_proj", "gemma": "q_proj,v_proj", "gemma2": "q_proj,v_proj", "gemma3_text": "q_proj,v_proj",
	"qwen2": "q_proj,v_proj", "qwen3": "q_proj,v_proj", "phi": "q_proj,v_proj,fc1,fc2",
}

// checkFrozen refuses adapters and quantised weights that cannot be trained,
// and targets that are not in the model.
func checkFrozen(g *modelgraph.Graph, w *costmodel.Workload, runtime engine.Engine) error {
	targets := strings.Join(w.LoRATargets, ",")
	switch {
	case w.LoRARank < 0 || w.LoRARank > maxRank:
		return refuse("lora_rank", w.LoRARank, "%d is not between 0 (none) and %d", w.LoRARank, maxRank)
	case w.LoRARank == 0 && len(w.LoRATargets) > 0:
		return refuse("lora_targets", targets, "%s need a rank: add %v", targets, usualRank)
	case w.LoRARank > 0 && len(w.LoRATargets) == 0:
		if usual, ok := loraDefaults[g.Family]; ok {
			return refuse("lora_targets", "", "no modules are named; PEFT's default for %s is %v", g.Family, costmodel.Set("lora_targets", usual))
		}
		return refuse("lora_targets", "", "no modules are named; this model has %s, and %s means all of them", suffixes(g, ""), allLinear.Value)
	case w.Quantize != "" && w.Mode == costmodel.Train && w.LoRARank == 0:
		return refuse("quantize", w.Quantize, "%s weights take no gradients, so the model cannot be trained in full: add %v %v, or leave %v out",
			w.Quantize, usualRank, allLinear, costmodel.Setting{Field: "quantize"})
	case w.LoRARank == 0 && w.LoRAPrecision != "":
		return refuse("lora_precision", w.LoRAPrecision, "%s is the type of adapters, which need a rank: add %v", w.LoRAPrecision, usualRank)
	}
	if w.LoRARank > 0 {
		if _, err := runtime.Adapters(w); err != nil {
			return err
		}
	}
	return checkTargets(g, w.LoRATargets)
}

// checkTargets refuses a target that no linear layer is.
func checkTargets(g *modelgraph.Graph, targets []string) error {
	all := projections(g)
	for _, target := range targets {
		if !slices.ContainsFunc(all, func(linear modelgraph.Projection) bool { return layers.Targeted([]string{target}, &linear) }) {
			return refuse("lora_targets", target, "%q ends no linear layer's name; nearest: %s", target, suffixes(g, target))
		}
	}
	return nil
}

// suffixes are the last parts of linear layers' names, those nearest to a
// word first.
func suffixes(g *modelgraph.Graph, word string) string {
	var names []string
	for _, linear := range projections(g) {
		names = append(names, linear.Module[strings.LastIndexByte(linear.Module, '.')+1:])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none (it has no linear layers)"
	}
	word = word[strings.LastIndexByte(word, '.')+1:]
	slices.SortStableFunc(names, func(a, b string) int {
		return levenshtein.ComputeDistance(a, word) - levenshtein.ComputeDistance(b, word)
	})
	return strings.Join(names[:min(len(names), 8)], ", ")
}

func projections(g *modelgraph.Graph) []modelgraph.Projection {
	var out []modelgraph.Projection
	for i := range g.Layers {
		out = append(out, g.Projections(i)...)
	}
	return out
}
