package hf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// This file counts what quantization_config says of a config without its
// files: the tensors that a folder of such weights holds, name by name.

// fromConfigAlone is in the warnings that files make needless.
const fromConfigAlone = "from the config alone"

// storedElements says that packed weights are counted by what is stored.
func storedElements(graph *modelgraph.Graph, weights int64) string {
	return fmt.Sprintf("parameters are counted as the elements that are stored: %d, of %s tensors and their tables, stand for %d weights", graph.ParamCount(), graph.Quantized, weights)
}

// storedFormat is a quantised format whose tensors follow from a config.
type storedFormat struct {
	method string
	block  [2]int64         // rows and columns that share a scale
	bits   int64            // of a weight in 32-bit words
	group  int64            // inputs that share a scale; -1: all
	skip   []*regexp.Regexp // modules that stay as they are
	ends   []string         // the same, as ends of their names
}

// readStored reads quantization_config; nil if its tensors do not follow from
// it.
func readStored(cfg *config) *storedFormat {
	section := cfg.sub("quantization_config")
	format := &storedFormat{method: section.name("quant_method")}
	if !format.readSkipped(section) {
		return nil
	}
	switch format.method {
	case "mxfp4":
		return format
	case "fp8":
		block := section.dims("weight_block_size")
		scheme := section.name("activation_scheme")
		if len(block) != 2 || min(block[0], block[1]) < 1 || scheme != "" && scheme != "dynamic" {
			return nil
		}
		format.block = [2]int64{block[0], block[1]}
		return format
	case "awq", "gptq":
		return format.readWords(section)
	}
	return nil
}

// readWords reads what packs weights into 32-bit words: AWQ in its GEMM layout, the
// default, and GPTQ. Of other layouts nil.
func (format *storedFormat) readWords(section *config) *storedFormat {
	format.bits, format.group = section.whole(4, "bits"), -1
	if string(section.members["group_size"]) != "-1" {
		format.group = section.whole(128, "group_size")
	}
	version := section.name("version")
	layout := format.method == "gptq" || version == "" || strings.EqualFold(version, "gemm")
	if !layout || format.bits != 4 && format.bits != 8 || format.group < 1 && format.group != -1 ||
		section.has("modules_in_block_to_quantize") || section.flag("lm_head") {
		return nil
	}
	return format
}

// readSkipped reads modules_to_not_convert by the rule of Transformers'
// should_convert_module: a start as a Python expression, or an end. Without
// the list the heads stay (get_keys_to_not_convert).
func (format *storedFormat) readSkipped(section *config) bool {
	names := section.strs("modules_to_not_convert")
	if !section.has("modules_to_not_convert") {
		names = []string{"lm_head", "score", "classifier"}
	}
	for _, name := range names {
		expr, err := regexp.Compile("^(?:" + name + ")")
		if err != nil {
			return false
		}
		format.skip, format.ends = append(format.skip, expr), append(format.ends, name)
	}
	return true
}

func (format *storedFormat) skips(module string) bool {
	return slices.ContainsFunc(format.skip, func(expr *regexp.Regexp) bool { return expr.MatchString(module) }) ||
		slices.ContainsFunc(format.ends, func(end string) bool { return strings.HasSuffix(module, end) })
}

// asStored is the graph with the tensors that files of the config's format
// hold; the graph itself if these do not follow from the config.
func asStored(graph *modelgraph.Graph, cfg *config) (*modelgraph.Graph, error) {
	format := readStored(cfg)
	if format == nil || graph.Family == "gpt2" { // Conv1D is no nn.Linear
		return graph, nil
	}
	layers, changed := slices.Clone(graph.Layers), false
	for i := range layers {
		params, ok := format.params(&layers[i])
		if !ok {
			return graph, nil
		}
		changed = changed || params != nil
		if params != nil {
			layers[i].Params = params
		}
	}
	if !changed {
		return graph, nil
	}
	return rebuilt(graph, layers, format.method)
}

// rebuilt is graph with other layers.
func rebuilt(graph *modelgraph.Graph, layers []modelgraph.Layer, method string) (*modelgraph.Graph, error) {
	for i := range layers {
		layers[i].Params = slices.Clone(layers[i].Params)
		for j := range layers[i].Params {
			layers[i].Params[j].Owner = ""
		}
	}
	made, err := modelgraph.New(graph.Name, layers, graph.Ties)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", graph.Source, err)
	}
	if err := modelgraph.Join(made, graph.Joined); err != nil {
		return nil, fmt.Errorf("%s: %w", graph.Source, err)
	}
	out := *graph
	out.Layers, out.Units, out.Ties, out.Joined = made.Layers, made.Units, made.Ties, made.Joined
	out.Quantized = method
	out.Warnings = slices.DeleteFunc(slices.Clone(graph.Warnings), func(word string) bool { return strings.Contains(word, fromConfigAlone) })
	out.Warnings = append(out.Warnings, storedElements(&out, graph.ParamCount()))
	return &out, nil
}

// params are a layer's parameters as stored; nil if they stay as they are, and
// not ok if they cannot be known.
func (format *storedFormat) params(layer *modelgraph.Layer) (params []modelgraph.Tensor, ok bool) {
	switch layer.Op.(type) {
	case modelgraph.Attention, modelgraph.MLP, modelgraph.MoE, modelgraph.Linear, modelgraph.Head:
	case modelgraph.Embedding, modelgraph.Norm, modelgraph.Rotary, modelgraph.Parameter:
		return nil, true
	default:
		return nil, !slices.ContainsFunc(layer.Params, func(t modelgraph.Tensor) bool { return len(t.Shape) > 1 })
	}
	var plain, packed []modelgraph.Tensor
	for _, tensor := range layer.Params {
		stored, ok := format.tensors(layer.Name, tensor)
		if !ok {
			return nil, false
		}
		if stored == nil {
			plain = append(plain, tensor)
			continue
		}
		packed = append(packed, stored...)
		if stored[0].Name == tensor.Name { // the weight keeps its place
			plain, packed = append(plain, stored[0]), append(packed[:len(packed)-len(stored)], stored[1:]...)
		}
	}
	if len(packed) == 0 {
		return nil, true
	}
	return append(plain, packed...), true
}

// tensors are those that one weight is stored as; nil: as it is.
func (format *storedFormat) tensors(layer string, tensor modelgraph.Tensor) (stored []modelgraph.Tensor, ok bool) {
	full := modelgraph.FullName(layer, tensor.Name)
	base := lastComponent(tensor.Name)
	experts := len(tensor.Shape) == 3 && (base == "gate_up_proj" || base == "down_proj")
	if !experts && (len(tensor.Shape) != 2 || base != "weight") || format.skips(parent(full)) {
		return nil, true
	}
	if format.method == "mxfp4" {
		if !experts {
			return nil, true
		}
		return mxfp4(tensor)
	}
	if router := lastComponent(parent(full)); router == "gate" || router == "router" {
		return nil, true // a parameter, no nn.Linear
	}
	if format.bits > 0 {
		return format.words(tensor)
	}
	return format.fp8(tensor, experts && base == "gate_up_proj"), true
}

// words are a linear layer's weight, zeros and scales, input first: AutoAWQ's
// WQLinear_GEMM packs along the outputs, AutoGPTQ's QuantLinear along the inputs and
// keeps the group of every input.
func (format *storedFormat) words(tensor modelgraph.Tensor) (stored []modelgraph.Tensor, ok bool) {
	if len(tensor.Shape) != 2 {
		return nil, false // experts that are joined lie one by one in the files
	}
	out, in := tensor.Shape[0], tensor.Shape[1]
	group, values := format.group, 32/format.bits
	if group < 0 {
		group = in
	}
	if in%group != 0 || in%values != 0 || out%values != 0 {
		return nil, false
	}
	prefix, word := strings.TrimSuffix(tensor.Name, "weight"), typeNamed("I32")
	weight := []int64{in, out / values}
	if format.method == "gptq" {
		weight = []int64{in / values, out}
	}
	stored = []modelgraph.Tensor{
		{Name: prefix + "qweight", Shape: weight, DType: word},
		{Name: prefix + "qzeros", Shape: []int64{in / group, out / values}, DType: word},
		{Name: prefix + "scales", Shape: []int64{in / group, out}, DType: modelgraph.F16},
	}
	if format.method == "gptq" {
		stored = append(stored, modelgraph.Tensor{Name: prefix + "g_idx", Shape: []int64{in}, DType: word})
	}
	return stored, true
}

// fp8 is a weight of 8-bit floats and a scale a block; gate and up of experts
// are joined after they were cut into blocks.
func (format *storedFormat) fp8(tensor modelgraph.Tensor, joined bool) []modelgraph.Tensor {
	rank := len(tensor.Shape)
	rows, columns := tensor.Shape[rank-2], tensor.Shape[rank-1]
	parts := int64(1)
	if joined {
		parts = 2
	}
	scales := slices.Clone(tensor.Shape)
	scales[rank-2] = parts * ((rows/parts + format.block[0] - 1) / format.block[0])
	scales[rank-1] = (columns + format.block[1] - 1) / format.block[1]
	return []modelgraph.Tensor{
		{Name: tensor.Name, Shape: tensor.Shape, DType: typeNamed("F8_E4M3")},
		{Name: tensor.Name + "_scale_inv", Shape: scales, DType: modelgraph.F32},
	}
}

// mxfp4 is GptOssExperts' weights, input first: of every output, blocks of 32
// values in 16 bytes, and a scale a block (Mxfp4GptOssExperts).
func mxfp4(tensor modelgraph.Tensor) (stored []modelgraph.Tensor, ok bool) {
	const values, bytes = 32, 16
	experts, in, out := tensor.Shape[0], tensor.Shape[1], tensor.Shape[2]
	if in%values != 0 {
		return nil, false
	}
	return []modelgraph.Tensor{
		{Name: tensor.Name + "_blocks", Shape: []int64{experts, out, in / values, bytes}, DType: typeNamed("U8")},
		{Name: tensor.Name + "_scales", Shape: []int64{experts, out, in / values}, DType: typeNamed("U8")},
	}, true
}

func lastComponent(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
