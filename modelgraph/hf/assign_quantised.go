package hf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// quantisedSuffixes end the names of tensors of quantised formats, next to or instead of a weight.
var quantisedSuffixes = []string{
	".qweight", ".qzeros", ".scales", ".g_idx", // GPTQ, AWQ
	"_scale_inv", "_scale", "_scale_2", // FP8, compressed-tensors, NVFP4
	".weight_packed", ".weight_shape", ".weight_zero_point", ".weight_g_idx", ".weight_global_scale",
	"_blocks", "_scales", // MXFP4
	".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", // bitsandbytes
	".SCB", ".weight_format",
}

func quantisedName(name string) bool {
	return strings.Contains(name, ".quant_state.") ||
		slices.ContainsFunc(quantisedSuffixes, func(text string) bool { return strings.HasSuffix(name, text) })
}

// packs reports whether quantised formats put several weights into an element of the type, so that
// the stored shape is not the weight's.
func packs(dtype modelgraph.DType) bool {
	return slices.Contains([]string{"U8", "I8", "I32", "U32", "I64"}, dtype.String())
}

// placeExtra gives a tensor of quantised storage to the deepest module above it. Its name shows
// that it is one, or the config has a method and the module has own weights.
func (assigned *assignment) placeExtra(place slot, t *safetensors.Tensor) bool {
	module, layer, ok := assigned.moduleAbove(place.name)
	if !ok || !quantisedName(place.name) && (!assigned.configured || paths.Parent(place.name) != module && !assigned.belowWeight(place.name, module)) {
		return false
	}
	assigned.quantised[module] = true
	fill := assigned.extras[place.name]
	if fill == nil {
		fill = &filling{name: place.name, module: module, layer: layer}
		assigned.extras[place.name] = fill
		assigned.extraOrder = append(assigned.extraOrder, fill)
	}
	fill.pieces = append(fill.pieces, piece{place, t})
	return true
}

// belowWeight reports a tensor below a parameter of the module, such as quanto's weight._data.
func (assigned *assignment) belowWeight(name, module string) bool {
	first, _, below := strings.Cut(strings.TrimPrefix(name, module+"."), ".")
	return below && assigned.state[module+"."+first] != nil
}

// packed reports whether one stored element may contain several weights: by its type, or if
// bitsandbytes' table is next to it (bnb_4bit_quant_storage may be bfloat16).
func (assigned *assignment) packed(fill *filling, dtype modelgraph.DType) bool {
	return assigned.quantised[fill.module] && (packs(dtype) || assigned.extras[fill.name+".quant_map"] != nil)
}

// moduleAbove is the deepest module above a name that has parameters.
func (assigned *assignment) moduleAbove(name string) (module string, layer int, ok bool) {
	for path := paths.Parent(name); path != ""; path = paths.Parent(path) {
		if i, ok := assigned.modules[path]; ok {
			return path, i, strings.HasPrefix(name, assigned.graph.Layers[i].Name+".")
		}
	}
	return "", 0, false
}

// attach adds the extras to their layers and drops the parameters that quantised storage replaces.
func (assigned *assignment) attach() {
	if len(assigned.quantised) == 0 {
		return
	}
	for i := range assigned.graph.Layers {
		layer := &assigned.graph.Layers[i]
		layer.Params = slices.DeleteFunc(slices.Clone(layer.Params), func(t modelgraph.Tensor) bool {
			fill := assigned.state[modelgraph.FullName(layer.Name, t.Name)]
			return len(fill.pieces) == 0 && !fill.shared && assigned.quantised[fill.module]
		})
	}
	for _, fill := range assigned.extraOrder {
		layer := &assigned.graph.Layers[fill.layer]
		layer.Params = append(layer.Params, assigned.extraTensor(layer.Name, fill))
	}
}

// nameMethod notes the method by which the stored weights are quantised. Packed weights are counted
// as stored, with a warning: the framework registers the stored tensors.
func (assigned *assignment) nameMethod(graph *modelgraph.Graph, weights int64) {
	if graph.Quantized = quantMethod(assigned.config, graph); graph.Quantized == "" {
		return
	}
	if graph.ParamCount() != weights {
		graph.Warnings = append(graph.Warnings, storedElements(graph, weights))
	}
}

// quantMethod is the config's name of the method if weights have types that no framework trains;
// "packed" without a name.
func quantMethod(cfg *config, graph *modelgraph.Graph) string {
	packed := false
	for i := range graph.Layers {
		packed = packed || slices.ContainsFunc(graph.Layers[i].Params, func(t modelgraph.Tensor) bool { return !t.DType.Float() })
	}
	if !packed {
		return ""
	}
	return cmp.Or(storedMethod(cfg), cfg.sub("compression_config").name("quant_method"), "packed")
}

func (assigned *assignment) extraTensor(layer string, fill *filling) modelgraph.Tensor {
	assigned.choose(fill)
	return modelgraph.Tensor{
		Name:  strings.TrimPrefix(fill.name, layer+"."),
		Shape: composed(fill.pieces, nil), DType: assigned.storedType(fill), Parts: assigned.parts(fill),
	}
}
