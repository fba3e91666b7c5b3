package layers

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// fusedExperts are model types with experts that were linear layers in Transformers 4 and are
// parameters in 5. The values are the old layers' names. Source: peft 0.21,
// utils/transformers_weight_conversion.py, _MODEL_TO_CONVERSION_PATTERN.
var fusedExperts = map[string]*expertNames{
	"minimax": &mixtralNames, "minimax_m2": &mixtralNames, "mixtral": &mixtralNames,
	"afmoe": &qwenNames, "cohere2_moe": &qwenNames, "deepseek_v2": &qwenNames, "deepseek_v3": &qwenNames, "deepseek_v32": &qwenNames,
	"dots1": &qwenNames, "ernie4_5_moe": &qwenNames, "exaone_moe": &qwenNames, "flex_olmo": &qwenNames, "glm4_moe": &qwenNames,
	"glm4_moe_lite": &qwenNames, "glm4v_moe": &qwenNames, "glm_moe_dsa": &qwenNames, "hunyuan_v1_moe": &qwenNames, "longcat_flash": &qwenNames,
	"mellum": &qwenNames, "olmoe": &qwenNames, "qwen3_moe": &qwenNames, "qwen3_next": &qwenNames, "solar_open": &qwenNames,
}

// expertNames are the layers of an expert and the router (_MOE_TARGET_MODULE_MAPPING).
type expertNames struct{ gate, up, down string }

var (
	mixtralNames = expertNames{"w1", "w3", "w2"}
	qwenNames    = expertNames{"gate_proj", "up_proj", "down_proj"}
)

// targets are targets among remaining modules, and among parameters. PEFT maps a Transformers 4
// layer's name to the parameter that holds it now, and "all-linear" to all of them
// (_convert_peft_config_moe). Both halves of gate_up_proj have a rank each.
func (names *expertNames) targets(targets []string) (modules func(leaf string) bool, params map[string]int64) {
	mapped := map[string]string{"gate": "gate.weight", names.gate: "gate_up_proj", names.up: "gate_up_proj", names.down: "down_proj"}
	ranks := map[string]int64{"gate_up_proj": 2, "down_proj": 1, "gate.weight": 1}
	params = map[string]int64{}
	for _, target := range targets {
		leaf := leafOf(target)
		for old, now := range mapped {
			if strings.EqualFold(target, AllLinear) || leaf == old {
				params[now] = ranks[now]
			}
		}
	}
	return func(leaf string) bool { return mapped[leaf] == "" }, params
}

// expertAdapters are adapters on a mixture's parameters: A [rank × experts, in] and B [out, rank ×
// experts] (peft 0.21, tuners/lora/layer.py, ParamWrapper.update_layer).
func expertAdapters(layer *modelgraph.Layer, params map[string]int64, rank int64) []ops.Adapter {
	var out []ops.Adapter
	for j := range layer.Params {
		tensor := &layer.Params[j]
		for _, name := range []string{"gate_up_proj", "down_proj", "gate.weight"} {
			shape := tensor.Shape
			if params[name] == 0 || tensor.Name != name && !strings.HasSuffix(tensor.Name, "."+name) || len(shape) < 2 {
				continue
			}
			experts := int64(1)
			if len(shape) == 3 {
				experts, shape = shape[0], shape[1:]
			}
			out = append(out, ops.Adapter{Module: tensor.Name, In: shape[1], Out: shape[0], Rank: params[name] * rank * experts, Folded: tensor.Numel})
		}
	}
	return out
}

// adapters are layer i's adapters.
func adapters(model *Model, i int, projections []Projection) (out []ops.Adapter) {
	layer, workload := model.Layers[i].Layer, &model.Workload
	if workload.LoRARank == 0 {
		return nil
	}
	targets, modules := workload.LoRATargets, func(string) bool { return true }
	if names := namesOf(model.Graph); names != nil {
		var params map[string]int64
		if modules, params = names.targets(targets); isMixture(*layer) {
			out = expertAdapters(layer, params, workload.LoRARank)
		}
	}
	for j := range projections {
		linear := &projections[j]
		if targeted(targets, linear) && modules(leafOf(linear.Below)) {
			out = append(out, ops.Adapter{Module: linear.Below, In: linear.In, Out: linear.Out, Rank: workload.LoRARank, Output: linear.Output, Up: linear.Up})
		}
	}
	return out
}

// namesOf are the layer names of a graph's experts, if they are parameters.
func namesOf(graph *modelgraph.Graph) *expertNames {
	if slices.ContainsFunc(graph.Layers, isMixture) {
		return fusedExperts[graph.Family]
	}
	return nil
}

// Targeted reports that a target is a linear layer or experts' parameters. PEFT refuses one of the
// names fused into gate_up_proj without the other, which Targeted returns as missing.
func Targeted(graph *modelgraph.Graph, targets []string, target string) (found bool, missing string) {
	one := []string{target}
	names := namesOf(graph)
	for i := range graph.Layers {
		projections := Projections(graph, i)
		found = found || slices.ContainsFunc(projections, func(linear Projection) bool { return targeted(one, &linear) })
		if layer := &graph.Layers[i]; names != nil && isMixture(*layer) {
			_, params := names.targets(one)
			found = found || len(expertAdapters(layer, params, 1)) > 0
		}
	}
	if names == nil || strings.EqualFold(target, AllLinear) {
		return found, ""
	}
	return found, names.lacking(targets, target)
}

// lacking is the other half of gate_up_proj, if the targets have but one.
func (names *expertNames) lacking(targets []string, target string) string {
	other := map[string]string{names.gate: names.up, names.up: names.gate}[leafOf(target)]
	if slices.ContainsFunc(targets, func(target string) bool { return leafOf(target) == other || strings.EqualFold(target, AllLinear) }) {
		return ""
	}
	return other
}

func leafOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func isMixture(layer modelgraph.Layer) bool {
	_, mixture := layer.Op.(modelgraph.MoE)
	return mixture
}
