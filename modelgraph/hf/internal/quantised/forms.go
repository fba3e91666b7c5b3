package quantised

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// storedTensor is one of a linear layer's stored tensors. The shape has a product for each
// dimension, of sizes and numbers from left to right. * is times, / divides without remainder, ^
// divides and rounds up. The dtype "model" is the weight's, "$x" a type of the config's scheme.
type storedTensor struct{ name, dtype, shape string }

// storedForms are the tensors by which libraries store a weight [out in]; bits, group, rows, cols
// and others are sizes of the scheme. Each was compared with files of the library
// (testdata/quantised.jsonl.gz), unless a line has a note.
var storedForms = map[string][]storedTensor{
	// GPTQModel 7.7, qlinear/__init__.py, _register_gptq_buffers: v1 and v2.
	"gptq": {
		{"qweight", "I32", "in*bits^32 out"}, {"qzeros", "I32", "in^group out*bits^32"}, {"scales", "F16", "in^group out"}, {"g_idx", "I32", "in"},
	},
	// AutoAWQ 0.2.9, modules/linear/{gemm,gemv,gemv_fast}.py.
	"awq gemm":      {{"qweight", "I32", "in out*bits/32"}, {"qzeros", "I32", "in/group out*bits/32"}, {"scales", "F16", "in/group out"}},
	"awq gemv":      {{"qweight", "I32", "out in*bits/32"}, {"qzeros", "I32", "out in/group^8^spread*spread"}, {"scales", "F16", "out in/group^8^spread*spread*8"}},
	"awq gemv_fast": {{"qweight", "I16", "out/4 in"}, {"scales", "F16", "in/group^8^spread*spread*8 out"}, {"qzeros", "F16", "in/group^8^spread*spread*8 out"}},
	// bitsandbytes 0.50, functional.py, quantize_4bit and QuantState.as_dict; nn/modules.py, Linear8bitLt.
	"bnb4":        {{"weight", "$storage", "out*in^packed 1"}, {"weight.absmax", "F32", "out*in^64"}, {"weight.quant_map", "F32", "16"}, {"weight.quant_state.bitsandbytes__$type", "U8", "state"}},
	"bnb4 double": {{"weight", "$storage", "out*in^packed 1"}, {"weight.absmax", "U8", "out*in^64"}, {"weight.quant_map", "F32", "16"}, {"weight.nested_absmax", "F32", "out*in^64^256"}, {"weight.nested_quant_map", "F32", "256"}, {"weight.quant_state.bitsandbytes__$type", "U8", "state"}},
	"bnb8":        {{"weight", "I8", "out in"}, {"SCB", "F32", "out"}, {"weight_format", "U8", ""}},
	// Transformers 5.17, integrations/finegrained_fp8.py (FP8Linear), fbgemm_fp8.py and eetq.py.
	"fp8 block":  {{"weight", "F8_E4M3", "out in"}, {"weight_scale_inv", "$scale", "out^rows in^cols"}},
	"fp8 tensor": {{"weight", "F8_E4M3", "out in"}, {"weight_scale_inv", "F32", ""}},
	"fbgemm":     {{"weight", "F8_E4M3", "out in"}, {"weight_scale", "F32", "out 1"}}, // not written here: fbgemm_gpu has no CPU build
	"eetq":       {{"weight", "I8", "in out"}, {"weight_scales", "F16", "out"}},
	"quanto":     {{"weight._data", "$data", "out in"}, {"weight._scale", "model", "out 1"}},
	// optimum-quanto 0.2.7, tensor/grouped.py and packed.py.
	"quanto packed": {{"weight._data._data", "U8", "out*in/group*bits^8 group"}, {"weight._scale", "model", "out*in/group 1"}, {"weight._shift", "model", "out*in/group 1"}},
	// HQQ 0.2.8, core/quantize.py, Quantizer.quantize; core/bitpack.py.
	"hqq":       {{"W_q", "U8", "out*in/group*bits/8 group"}, {"scale", "model", "out*in/group 1"}, {"zero", "model", "out*in/group 1"}},
	"hqq 3":     {{"W_q", "I32", "out*in/group^10 group"}, {"scale", "model", "out*in/group 1"}, {"zero", "model", "out*in/group 1"}},
	"hqq rows":  {{"W_q", "U8", "group*bits^8 out*in/group"}, {"scale", "model", "1 out*in/group"}, {"zero", "model", "1 out*in/group"}},
	"hqq float": {{"W_q", "model", "out*in/group*bits^8 group/size"}, {"scale", "model", "out*in/group 1"}, {"zero", "model", "out*in/group 1"}},
	"hqq names": {
		{"axis", "I32", ""},
		{"group_size", "I32", ""},
		{"nbits", "I32", ""},
		{"shape", "I64", "2"},
		{"packing", "U8", "7"},
		{"unpack_view_dtype", "U8", "11"},
		{"compute_dtype", "U8", "name"},
		{"channel_wise", "U8", ""},
		{"encoded_state_dict", "U8", ""},
		{"offload_meta", "U8", ""},
		{"optimize", "U8", ""},
		{"quant_scale", "U8", ""},
		{"quant_zero", "U8", ""},
		{"round_zero", "U8", ""},
		{"stores_quant_config", "U8", ""},
		{"view_as_float", "U8", ""},
	},
	// torchao 0.18, quantization/quantize_/workflows.
	"torchao Int8WeightOnlyConfig":                      {{"_weight_qdata", "I8", "out in"}, {"_weight_scale", "F32", "out 1"}, {"_weight_zero_point", "I8", "out 1"}},
	"torchao Int8DynamicActivationInt8WeightConfig":     {{"_weight_qdata", "I8", "out in"}, {"_weight_scale", "F32", "out 1"}, {"_weight_zero_point", "I8", "out 1"}},
	"torchao Float8WeightOnlyConfig":                    {{"_weight_qdata", "F8_E4M3", "out in"}, {"_weight_scale", "F32", "out 1"}},
	"torchao Float8DynamicActivationFloat8WeightConfig": {{"_weight_qdata", "F8_E4M3", "out in"}, {"_weight_scale", "F32", "@scales"}}, // not written here: it needs compute capability 8.9
	"torchao IntxWeightOnlyConfig":                      {{"_weight_qdata", "I8", "out in"}, {"_weight_scale", "$scale", "out in/group"}, {"_weight_zero_point", "I8", "out in/group"}},
	"torchao Int8DynamicActivationIntxWeightConfig":     {{"_weight_qdata", "I8", "out in"}, {"_weight_scale", "$scale", "out in/group"}, {"_weight_zero_point", "I8", "out in/group"}},
	"torchao plain":             {{"_weight_qdata", "U8", "out in/2"}, {"_weight_scale", "model", "in/group out"}, {"_weight_zero_point", "model", "in/group out"}}, // int4_tensor.py; not written here: it needs mslk
	"torchao tile_packed_to_4d": {{"_weight_qdata", "I32", "out^8 in^1024*1024/128 32 4"}, {"_weight_scale_and_zero", "model", "in^1024*1024/group out^8*8 2"}},     // int4_tile_packed_to_4d_tensor.py; not written here
	// compressed-tensors 0.20, compressors/*/base.py and quantization/lifecycle/initialize.py.
	"ct pack":  {{"weight_packed", "I32", "out in*bits^32"}, {"weight_scale", "model", "@scales"}, {"weight_shape", "I64", "2"}},
	"ct naive": {{"weight", "$data", "out in"}, {"weight_scale", "model", "@scales"}},
	"ct nvfp4": {{"weight_packed", "U8", "out in/2"}, {"weight_scale", "F8_E4M3", "out in/group"}, {"weight_global_scale", "F32", "1"}},
	"ct mxfp4": {{"weight_packed", "U8", "out in/2"}, {"weight_scale", "U8", "out in/group"}},
	// TensorRT Model Optimizer 0.47's export (unified_export_hf.py).
	"modelopt nvfp4":                     {{"weight", "U8", "out in/2"}, {"weight_scale", "F8_E4M3", "out in/group"}, {"weight_scale_2", "F32", ""}, {"input_scale", "F32", ""}},
	"modelopt w4a16_nvfp4":               {{"weight", "U8", "out in/2"}, {"weight_scale", "F8_E4M3", "out in/group"}, {"weight_scale_2", "F32", ""}},
	"modelopt fp8":                       {{"weight", "F8_E4M3", "out in"}, {"weight_scale", "F32", ""}, {"input_scale", "F32", ""}},
	"modelopt fp8_per_channel_per_token": {{"weight", "F8_E4M3", "out in"}, {"weight_scale", "F32", "out"}},
	"modelopt w8a8_sq_per_channel":       {{"weight", "I8", "out in"}, {"weight_scale", "F32", "out"}, {"input_scale", "F32", ""}, {"pre_quant_scale", "model", "in"}},
	"modelopt mxfp8":                     {{"weight", "F8_E4M3", "out in"}, {"weight_scale", "U8", "out in/32"}},
}

// sizes are the names in the products of a shape.
type sizes map[string]int64

// shape evaluates the products of a shape; not ok if a part does not divide.
func (at sizes) shape(text string) (shape []int64, ok bool) {
	shape = []int64{}
	for product := range strings.FieldsSeq(text) {
		count, ok := at.product(product)
		if !ok {
			return nil, false
		}
		shape = append(shape, count)
	}
	return shape, true
}

func (at sizes) product(text string) (count int64, ok bool) {
	count = 1
	for op := byte('*'); ; {
		end := strings.IndexAny(text, "*/^")
		term := text
		if end >= 0 {
			term = text[:end]
		}
		factor, named := at[term]
		if !named {
			factor, _ = strconv.ParseInt(term, 10, 64)
		}
		switch {
		case factor < 1:
			return 0, false
		case op == '*':
			count *= factor
		case op == '/' && count%factor != 0:
			return 0, false
		default:
			count = (count + factor - 1) / factor
		}
		if end < 0 {
			return count, true
		}
		op, text = text[end], text[end+1:]
	}
}

// linear is a weight [out in] that a scheme stores, and the tensors' common prefix.
type linear struct {
	prefix  string
	out, in int64
	dtype   modelgraph.DType
}

// tensors are the scheme's stored tensors of a linear layer.
func (scheme *storedScheme) tensors(layer linear) (stored []modelgraph.Tensor, ok bool) {
	at := sizes{"out": layer.out, "in": layer.in}
	for name, size := range scheme.sizes {
		at[name] = size
	}
	if scheme.more != nil {
		scheme.more(at, layer)
	}
	if at["group"] < 0 { // one group
		at["group"] = layer.in
	}
	for _, form := range scheme.form {
		shape, ok := at.shape(strings.ReplaceAll(form.shape, "@scales", scheme.names["scales"]))
		if !ok {
			return nil, false
		}
		name, dtype := form.name, layer.dtype
		if before, key, found := strings.Cut(name, "$"); found {
			name = before + scheme.names[key]
		}
		if key, found := strings.CutPrefix(form.dtype, "$"); found && scheme.names[key] != "model" {
			dtype = spell.DType(scheme.names[key])
		} else if !found && form.dtype != "model" {
			dtype = spell.DType(form.dtype)
		}
		stored = append(stored, modelgraph.Tensor{Name: layer.prefix + name, Shape: shape, DType: dtype})
	}
	return stored, true
}
