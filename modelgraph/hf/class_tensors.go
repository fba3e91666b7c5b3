package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// keepFloat32 sets float32 for parameters that keep it in a model of a half type: by
// _get_dtype_plan (modeling_utils.py), or because the class makes them so.
func (modules *builder) keepFloat32(class *namedClass, cfg *config, dtype modelgraph.DType) {
	if dtype != modelgraph.F16 && dtype != modelgraph.BF16 {
		return
	}
	planned := class.float32Names(cfg, dtype)
	if planned == nil && len(class.Made) == 0 {
		return
	}
	for i := range modules.layers {
		layer := &modules.layers[i]
		for j := range layer.Params {
			param := &layer.Params[j]
			name := modelgraph.FullName(layer.Name, param.Name)
			if param.DType == noType && (planned != nil && planned(name) || slices.Contains(class.Made, paths.Starred(name))) {
				param.DType = modelgraph.F32
			}
		}
	}
}

// float32Names reports the parameters that stay, nil for none.
func (class *namedClass) float32Names(cfg *config, dtype modelgraph.DType) func(name string) bool {
	in := cfg.shared.in
	config := in.ConfigOf(cfg.name("model_type"))
	model, _, _ := strings.Cut(class.Class, "For")
	for _, name := range []string{class.Class, model + "ForCausalLM", model + "Model"} {
		if tabled := in.Class(name, config); tabled != nil && tabled.Config == config {
			return tables.AnyIn(tabled.Float32Names(dtype))
		}
	}
	var names []string
	if class.Type == "deepseek_v2" && cfg.since("5.24") { // modeling_deepseek_v2.py: the table has none of its classes
		names = append(names, "gate.weight")
	}
	class.models(cfg, func(_ string, model *namedModel, child bool) {
		if child {
			names = append(names, model.Strict...)
		}
		if child && dtype == modelgraph.F16 {
			names = append(names, model.Float32...)
		}
	})
	slices.Sort(names)
	names = slices.Compact(names)
	return tables.AnyIn(names)
}

// save marks the buffers that state dicts include, by their patterns.
func (modules *builder) save(stored []string) {
	for i := range modules.layers {
		layer := &modules.layers[i]
		for j := range layer.Buffers {
			name := paths.Starred(modelgraph.FullName(layer.Name, layer.Buffers[j].Name))
			layer.Buffers[j].Persistent = layer.Buffers[j].Persistent || slices.Contains(stored, name)
		}
	}
}
