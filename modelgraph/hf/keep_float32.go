package hf

import (
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// float32Names are the parameters that stay in float32 where the model is
// loaded in a half type (modeling_utils.py: _get_dtype_plan).
func float32Names(class, modelType string, cfg *config, dtype modelgraph.DType) *regexp.Regexp {
	half := dtype == modelgraph.F16
	named := namedClassOf(class, modelType)
	if named == nil || !half && dtype != modelgraph.BF16 {
		return nil
	}
	var names []string
	named.models(cfg, func(_ string, model *namedModel, child bool) {
		if child {
			names = append(names, model.Strict...)
		}
		if child && half {
			names = append(names, model.Float32...)
		}
	})
	slices.Sort(names)
	names = slices.Compact(names)
	expr, err := regexp.Compile(strings.ReplaceAll(strings.Join(names, "|"), "*", ".*"))
	if len(names) == 0 || err != nil {
		return nil
	}
	return expr
}

// keepFloat32 gives those of the builder's parameters that type.
func (modules *builder) keepFloat32(names *regexp.Regexp) {
	if names == nil {
		return
	}
	for i := range modules.layers {
		layer := &modules.layers[i]
		for j := range layer.Params {
			if param := &layer.Params[j]; param.DType == noType && names.MatchString(modelgraph.FullName(layer.Name, param.Name)) {
				param.DType = modelgraph.F32
			}
		}
	}
}
