package estimate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/modelgraph"
)

// maxRank keeps sizes far from overflow.
const maxRank = 1 << 16

// What usually works.
var (
	usualRank = costmodel.Set("lora_rank", "16")
	allLinear = costmodel.Set("lora_targets", layers.AllLinear)
)

// loraDefaults are PEFT's targets if none are given (peft 0.21, peft/utils/constants.py,
// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING), by model type.
var loraDefaults = map[string]string{
	"t5": "q,v", "mt5": "q,v", "bart": "q_proj,v_proj", "gpt2": "c_attn", "bloom": "query_key_value", "opt": "q_proj,v_proj",
	"gptj": "q_proj,v_proj", "gpt_neox": "query_key_value", "gpt_neo": "q_proj,v_proj", "bert": "query,value", "roberta": "query,value",
	"xlm-roberta": "query,value", "electra": "query,value", "deberta-v2": "query_proj,value_proj", "deberta": "in_proj", "layoutlm": "query,value",
	"llama": "q_proj,v_proj", "llama4": "q_proj,v_proj", "gpt_bigcode": "c_attn", "mpt": "Wqkv", "falcon": "query_key_value", "codegen": "qkv_proj",
	"mistral": "q_proj,v_proj", "mixtral": "q_proj,v_proj", "stablelm": "q_proj,v_proj", "phi": "q_proj,v_proj,fc1,fc2",
	"gemma": "q_proj,v_proj", "gemma2": "q_proj,v_proj", "gemma3_text": "q_proj,v_proj", "qwen2": "q_proj,v_proj", "qwen3": "q_proj,v_proj",
	"nemotron_h": "q_proj,k_proj,v_proj,o_proj",
}

// failing are linear layers on which PEFT 0.21 fails, by model type. It refuses Mamba's mixers
// (tuners_utils.py, _check_lora_target_modules_mamba), and routers that return several tensors
// break Linear.forward (tuners/lora/layer.py).
var failing = map[string]string{
	"mamba": "out_proj", "mamba2": "out_proj", "falcon_mamba": "out_proj", "falcon_h1": "out_proj", "nemotron_h": "out_proj",
	"llama4": "router", "llama4_text": "router", "phimoe": "router",
}

// resolveTargets gives adapters without targets PEFT's own for the model's type.
func resolveTargets(graph *modelgraph.Graph, workload *costmodel.Workload) {
	if usual, ok := loraDefaults[graph.Family]; ok && workload.LoRARank > 0 && len(workload.LoRATargets) == 0 {
		workload.LoRATargets = strings.Split(usual, ",")
	}
}

// checkDropout refuses dropout without adapters.
func checkDropout(workload *costmodel.Workload) error {
	if workload.LoRARank > 0 || !workload.LoRADropout {
		return nil
	}
	return refuse("lora_dropout", "true", "dropout is on the input of adapters, which need a rank: add %v", usualRank)
}

// checkFrozen refuses untrainable adapters and quantised weights, and targets not in the model.
func checkFrozen(graph *modelgraph.Graph, workload *costmodel.Workload, runtime engine.Engine) error {
	targets := strings.Join(workload.LoRATargets, ",")
	switch {
	case workload.LoRARank < 0 || workload.LoRARank > maxRank:
		return refuse("lora_rank", workload.LoRARank, "%d is not between 0 (none) and %d", workload.LoRARank, maxRank)
	case workload.LoRARank == 0 && len(workload.LoRATargets) > 0:
		return refuse("lora_targets", targets, "%s: a rank is missing; add %v", targets, usualRank)
	case workload.LoRARank > 0 && weightsAlone(graph):
		return refuse("lora_rank", workload.LoRARank, "devmap knows the weights of this model alone, not which of its layers are linear: %v plans the weights, %s", costmodel.Set("mode", costmodel.Load), exported)
	case workload.LoRARank > 0 && len(workload.LoRATargets) == 0:
		return refuse("lora_targets", "", "no modules are named, and PEFT has no default for this model; it has %s, and %s means all of them", suffixes(graph, ""), allLinear.Value)
	case workload.Quantize != "" && workload.Mode == costmodel.Train && workload.LoRARank == 0:
		return refuse("quantize", workload.Quantize, "%s weights take no gradients, so the model cannot be trained in full: add %v %v, or leave %v out",
			workload.Quantize, usualRank, allLinear, costmodel.Setting{Field: "quantize"})
	case workload.LoRARank == 0 && workload.LoRAPrecision != "":
		return refuse("lora_precision", workload.LoRAPrecision, "%s is the type of adapters, which need a rank: add %v", workload.LoRAPrecision, usualRank)
	}
	return checkTargets(graph, workload, runtime)
}

// checkTargets refuses adapters that the runtime cannot train, and targets that match nothing.
func checkTargets(graph *modelgraph.Graph, workload *costmodel.Workload, runtime engine.Engine) error {
	if workload.LoRARank > 0 {
		if _, err := runtime.Adapters(workload); err != nil {
			return err
		}
	}
	targets := workload.LoRATargets
	for _, target := range targets {
		if name := failing[graph.Family]; name != "" && (target == layers.AllLinear && hasModule(graph, name) || target == name || strings.HasSuffix(target, "."+name)) {
			return refuse("lora_targets", target, "%q is among these, and PEFT 0.21 fails on it for model type %q: name others of %s", name, graph.Family, suffixes(graph, ""))
		}
	}
	for _, target := range targets {
		found, missing := layers.Targeted(graph, targets, target)
		switch {
		case !found:
			whose := ""
			if workload.Preset != "" {
				whose = fmt.Sprintf(" (your choice or the default of --preset %s)", workload.Preset)
			}
			return refuse("lora_targets", target, "%q%s ends no linear layer's name; nearest: %s; %v takes all", target, whose, suffixes(graph, target), allLinear)
		case missing != "":
			return refuse("lora_targets", target, "%q needs %s too: PEFT has both in the experts' gate_up_proj", target, missing)
		}
	}
	return nil
}

// hasModule reports a matrix of a module of that name.
func hasModule(graph *modelgraph.Graph, name string) bool {
	found := false
	for i := range graph.Layers {
		for _, tensor := range graph.Layers[i].Params {
			found = found || strings.HasSuffix("."+modelgraph.FullName(graph.Layers[i].Name, tensor.Name), "."+name+".weight")
		}
	}
	return found
}

// suffixes are the last parts of linear layers' names, the nearest to a word first.
func suffixes(graph *modelgraph.Graph, word string) string {
	var names []string
	for _, linear := range projections(graph) {
		names = append(names, linear.Module[strings.LastIndexByte(linear.Module, '.')+1:])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none (" + whyNone(graph) + ")"
	}
	word = word[strings.LastIndexByte(word, '.')+1:]
	return strings.Join(modelgraph.Nearest(word, names, 8, math.MaxInt), ", ")
}

func projections(graph *modelgraph.Graph) []layers.Projection {
	var out []layers.Projection
	for i := range graph.Layers {
		out = append(out, layers.Projections(graph, i)...)
	}
	return out
}

// weightsAlone reports a model without known operations, as one of a table of weights.
func weightsAlone(graph *modelgraph.Graph) bool {
	return !slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		switch layer.Op.(type) {
		case modelgraph.Opaque, modelgraph.Parameter:
			return layer.Declared != nil
		}
		return true
	})
}

// exported is how to plan more than the weights.
const exported = "devmap.export(module) in Python writes a model.json with what the layers compute, for all else"

// whyNone says why a model takes no adapters: no linear layers, or none with known shapes.
func whyNone(graph *modelgraph.Graph) string {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		switch layer.Op.(type) {
		case modelgraph.Linear, modelgraph.MLP, modelgraph.Attention, modelgraph.MoE:
			if len(layer.Params) == 0 {
				return fmt.Sprintf("%q has no params: give the shapes of its linear layers", layer.Name)
			}
		}
	}
	return "it has no linear layers"
}
