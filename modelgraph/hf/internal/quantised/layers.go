// Package quantised derives the tensors that libraries of quantization store for the linear layers
// of a model, from the quantization_config alone. [Read] reads the config, [Format.Stored] gives
// the layers.
package quantised

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// Section is an object of a config: quantization_config, or one inside it. A field that is absent
// has the getter's default. A value of the wrong type is a fault of the config at that field.
type Section interface {
	Members() map[string]jsontext.Value
	Has(name string) bool // there, and not null
	Pick(names []string) string
	Name(name string) string
	Flag(name string) bool
	Bool(def bool, names ...string) bool
	Dim(def int64, names ...string) int64
	Pos(def int64, names ...string) int64
	Optional(def int64, name string) int64
	Dims(name string) []int64
	Strs(name string) []string
	Sub(name string) Section
	Objects(name string) []Section
	Fail(name, format string, args ...any)
}

// Format is a quantised format whose tensors follow from a config.
type Format struct {
	method  string
	schemes []storedScheme
	skip    []func(module string) bool // modules that stay as they are
	// experts is how joined experts are stored: joined, apart (one by one), or plain (unchanged).
	experts  expertsStored
	inBlock  bool           // linear layers outside the text model's blocks stay as they are
	anyStart bool           // a listed name covers all names that begin with it
	swapped  bool           // linear layers lie input first (Conv1D)
	flip     bool           // experts lie input first
	cache    []storedTensor // scales of cached keys and values, of every attention
	bias     string         // type of the biases of layers that are packed; empty: their own
	missing  string         // why the tensors do not follow
	cut      int64          // experts that were taken apart
	linear   []string       // linear layers, with stars, for opaque layers
}

// maxCut is more experts, over all layers, than any published model has.
const maxCut = 50_000

type expertsStored int

const (
	expertsPlain expertsStored = iota
	expertsApart
	expertsJoined
)

// storedScheme is how some of the linear layers are stored.
type storedScheme struct {
	form    []storedTensor
	sizes   sizes
	names   map[string]string
	more    func(at sizes, layer linear) // sizes that follow from the layer
	matches func(module string) bool     // nil: all
	// keepsUneven: a layer that the groups do not divide is unchanged.
	keepsUneven bool
}

// Stored are the layers of a graph with the stored tensors of the format, and the ties that remain.
// missing says why the tensors do not follow from the config.
func (format *Format) Stored(graph *modelgraph.Graph) (layers []modelgraph.Layer, ties [][]string, missing string) {
	layers, changed := slices.Clone(graph.Layers), false
	for i := range layers {
		if format.missing != "" {
			break
		}
		params := format.params(&layers[i])
		changed = changed || params != nil
		if params != nil {
			layers[i].Params = params
		}
	}
	if format.missing == "" && !changed {
		format.missing = "it leaves every layer as it is"
	}
	if format.missing != "" {
		return nil, nil, format.missing
	}
	there := make(map[string]modelgraph.DType)
	for i := range layers {
		for j := range layers[i].Params {
			there[modelgraph.FullName(layers[i].Name, layers[i].Params[j].Name)] = layers[i].Params[j].DType
		}
	}
	ties = slices.DeleteFunc(slices.Clone(graph.Ties), func(names []string) bool { // a head that is packed shares nothing
		return slices.ContainsFunc(names, func(name string) bool { dtype, found := there[name]; return !found || dtype != there[names[0]] })
	})
	return layers, ties, ""
}

// params are a layer's parameters as stored; nil if they stay as they are. Sizes that cannot be
// known are noted as missing.
func (format *Format) params(layer *modelgraph.Layer) []modelgraph.Tensor {
	if !stores(format, layer) {
		return nil
	}
	var plain, packed []modelgraph.Tensor
	changed := make(map[string]bool) // modules with a weight that is stored otherwise
	for _, tensor := range layer.Params {
		stored := format.tensors(layer, tensor)
		if stored == nil {
			plain = append(plain, tensor)
			continue
		}
		packed, changed[paths.Parent(tensor.Name)] = append(packed, stored...), true
		if stored[0].Name == tensor.Name { // the weight keeps its place
			plain, packed = append(plain, stored[0]), append(packed[:len(packed)-len(stored)], stored[1:]...)
		}
	}
	packed = append(packed, cacheScales(format, layer)...)
	if len(packed) == 0 && len(plain) == len(layer.Params) {
		return nil
	}
	for i := range plain {
		if format.bias != "" && paths.Last(plain[i].Name) == "bias" && changed[paths.Parent(plain[i].Name)] {
			plain[i].DType = spell.DType(format.bias)
		}
	}
	return append(plain, packed...)
}

// stores reports a layer that may store weights otherwise.
func stores(format *Format, layer *modelgraph.Layer) bool {
	switch layer.Op.(type) {
	case modelgraph.Embedding, modelgraph.Norm, modelgraph.Rotary, modelgraph.Parameter:
		return false
	case modelgraph.Opaque:
		if format.linear != nil && !format.swapped && !format.inBlock {
			return true
		}
		if slices.ContainsFunc(layer.Params, func(t modelgraph.Tensor) bool { return len(t.Shape) > 1 }) {
			format.missing = fmt.Sprintf("it is not known which weights of %q are linear layers", layer.Name)
		}
		return false
	}
	return true
}

// cacheScales are the scales of a quantised KV cache that an attention layer stores.
func cacheScales(format *Format, layer *modelgraph.Layer) []modelgraph.Tensor {
	op, ok := layer.Op.(modelgraph.Attention)
	if !ok || op.Cross || len(layer.Params) == 0 {
		return nil
	}
	scheme := storedScheme{form: format.cache}
	scales, _ := scheme.tensors(linear{dtype: layer.Params[0].DType})
	return scales
}

// tensors are the stored tensors of one weight; nil: unchanged.
func (format *Format) tensors(layer *modelgraph.Layer, tensor modelgraph.Tensor) []modelgraph.Tensor {
	full := modelgraph.FullName(layer.Name, tensor.Name)
	base, module := paths.Last(tensor.Name), paths.Parent(full)
	if len(tensor.Shape) == 3 && (base == "gate_up_proj" || base == "down_proj") {
		return format.expertTensors(full, tensor)
	}
	if _, opaque := layer.Op.(modelgraph.Opaque); opaque && !slices.Contains(format.linear, paths.Starred(module)) {
		return nil
	}
	if len(tensor.Shape) != 2 || base != "weight" || paths.NotLinear[paths.Last(module)] || format.skips(layer, module) {
		return nil
	}
	weight := linear{prefix: strings.TrimSuffix(tensor.Name, "weight"), out: tensor.Shape[0], in: tensor.Shape[1], dtype: tensor.DType}
	if format.swapped {
		if _, head := layer.Op.(modelgraph.Head); !head {
			weight.out, weight.in = weight.in, weight.out
		}
	}
	return format.weight(module, weight)
}

func (format *Format) skips(layer *modelgraph.Layer, module string) bool {
	if format.inBlock && (layer.Unit == "" || layer.Stream != (modelgraph.Stream{})) {
		return true
	}
	return anyOf(format.skip)(module)
}

// weight are the stored tensors of a linear layer by the scheme that matches it.
func (format *Format) weight(module string, weight linear) []modelgraph.Tensor {
	for i := range format.schemes {
		scheme := &format.schemes[i]
		if scheme.matches != nil && !scheme.matches(module) {
			continue
		}
		if scheme.form == nil {
			return nil
		}
		if paths.Last(module) == "shared_expert_gate" && (format.method == "gptq" || format.method == "awq") { // one output: both leave it
			return nil
		}
		if scheme.keepsUneven && weight.in%scheme.sizes["group"] != 0 {
			return nil
		}
		stored, ok := scheme.tensors(weight)
		if !ok && format.missing == "" {
			format.missing = fmt.Sprintf("its groups do not divide %q [%d %d]", module, weight.out, weight.in)
		}
		return stored
	}
	return nil
}

// expertTensors are the stored tensors of experts that are joined in one tensor.
func (format *Format) expertTensors(full string, tensor modelgraph.Tensor) []modelgraph.Tensor {
	module, base := paths.Parent(full), paths.Last(tensor.Name)
	if format.method == "mxfp4" {
		return mxfp4(format, tensor)
	}
	if format.experts == expertsPlain || anyOf(format.skip)(module) {
		return nil
	}
	names, rows, columns := []string{base}, tensor.Shape[1], tensor.Shape[2]
	if base == "gate_up_proj" {
		names, rows = []string{"gate_proj", "up_proj"}, rows/2
	}
	switch {
	case format.experts == expertsJoined:
		return format.joined(tensor, int64(len(names)))
	case format.flip:
		format.missing = fmt.Sprintf("it is not known how %q is cut into experts", full)
		return nil
	}
	return format.apart(module, strings.TrimSuffix(tensor.Name, base), names, modelgraph.Tensor{Shape: []int64{tensor.Shape[0], rows, columns}, DType: tensor.DType})
}

// apart are experts as linear layers one by one; of each, the matrices with these names.
func (format *Format) apart(module, prefix string, names []string, tensor modelgraph.Tensor) []modelgraph.Tensor {
	rows, columns := tensor.Shape[1], tensor.Shape[2]
	if format.cut += min(tensor.Shape[0], maxCut); format.cut >= maxCut {
		format.missing = fmt.Sprintf("it has %d experts or more", maxCut)
		return nil
	}
	var stored []modelgraph.Tensor
	for expert := range tensor.Shape[0] {
		for _, name := range names {
			path := fmt.Sprintf("%d.%s", expert, name)
			whole := modelgraph.FullName(module, path)
			weight := linear{prefix: prefix + path + ".", out: rows, in: columns, dtype: tensor.DType}
			parts := []modelgraph.Tensor(nil)
			if !anyOf(format.skip)(whole) {
				parts = format.weight(whole, weight)
			}
			if parts == nil {
				parts = []modelgraph.Tensor{{Name: weight.prefix + "weight", Shape: []int64{rows, columns}, DType: tensor.DType}}
			}
			stored = append(stored, parts...)
		}
		if format.missing != "" {
			return nil
		}
	}
	return stored
}

// joined is a weight of 8-bit floats and a scale for each block or matrix. Gate and up of experts
// are joined after they were cut into blocks (integrations/finegrained_fp8.py, FP8Experts).
func (format *Format) joined(tensor modelgraph.Tensor, parts int64) []modelgraph.Tensor {
	scheme := &format.schemes[0]
	experts, rows, columns := tensor.Shape[0], tensor.Shape[1]/parts, tensor.Shape[2]
	high, wide := cmp.Or(scheme.sizes["rows"], rows), cmp.Or(scheme.sizes["cols"], columns)
	scale := spell.DType(scheme.names["scale"])
	if scheme.sizes["rows"] == 0 {
		scale = modelgraph.F32
	}
	stored := []modelgraph.Tensor{
		{Name: tensor.Name, Shape: tensor.Shape, DType: spell.DType("F8_E4M3")},
		{Name: tensor.Name + "_scale_inv", Shape: []int64{experts, parts * ((rows + high - 1) / high), (columns + wide - 1) / wide}, DType: scale},
	}
	if scheme.sizes["static"] > 0 {
		stored = append(stored, modelgraph.Tensor{Name: tensor.Name + "_activation_scale", Shape: []int64{experts}, DType: modelgraph.F32})
	}
	return stored
}

// mxfp4 is GptOssExperts' weights, input first: of every output, blocks of 32 values in 16 bytes,
// and a scale a block (Mxfp4GptOssExperts).
func mxfp4(format *Format, tensor modelgraph.Tensor) []modelgraph.Tensor {
	const values, bytes = 32, 16
	experts, in, out := tensor.Shape[0], tensor.Shape[1], tensor.Shape[2]
	if in%values != 0 {
		format.missing = fmt.Sprintf("blocks of %d do not divide %q %v", values, tensor.Name, tensor.Shape)
		return nil
	}
	return []modelgraph.Tensor{
		{Name: tensor.Name + "_blocks", Shape: []int64{experts, out, in / values, bytes}, DType: spell.DType("U8")},
		{Name: tensor.Name + "_scales", Shape: []int64{experts, out, in / values}, DType: spell.DType("U8")},
	}
}
