package quantised

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// storedRule is the effect of a method of Transformers 5.17 on a model (quantizers/*.py).
type storedRule struct {
	// skip is the field that lists unchanged modules.
	skip []string
	// defaults: modules of get_keys_to_not_convert stay too, "always", or if the list is "absent".
	defaults string
	// experts is how joined experts are stored, before5 how a release before 5 stores them.
	experts, before5 expertsStored
	inBlock          bool
	// keepsTies: a head that shares the table's weight is loaded as the table.
	keepsTies bool
	read      func(format *Format, section Section)
}

var storedRules = map[string]storedRule{
	"gptq":               {inBlock: true, experts: expertsApart, before5: expertsApart, read: (*Format).readGPTQ},
	"awq":                {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "always", experts: expertsApart, before5: expertsApart, read: (*Format).readAWQ},
	"bitsandbytes":       {keepsTies: true, skip: []string{"llm_int8_skip_modules"}, defaults: "absent", before5: expertsApart, read: (*Format).readBitsAndBytes},
	"fp8":                {keepsTies: true, skip: []string{"modules_to_not_convert", "ignored_layers"}, defaults: "absent", experts: expertsJoined, before5: expertsJoined, read: (*Format).readFP8},
	"mxfp4":              {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "absent", read: func(*Format, Section) {}},
	"fbgemm_fp8":         {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "absent", before5: expertsApart, read: (*Format).readPlain},
	"eetq":               {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "absent", before5: expertsApart, read: (*Format).readPlain},
	"quanto":             {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "absent", before5: expertsApart, read: (*Format).readQuanto},
	"hqq":                {keepsTies: true, before5: expertsApart, read: (*Format).readHQQ},
	"torchao":            {keepsTies: true, skip: []string{"modules_to_not_convert"}, defaults: "absent", before5: expertsApart, read: (*Format).readTorchAO},
	"compressed-tensors": {experts: expertsApart, before5: expertsApart, read: (*Format).readCompressed},
	"modelopt":           {experts: expertsApart, before5: expertsApart, read: (*Format).readModelOpt},
}

// otherMethods are methods of Transformers 5.24 (quantizers/auto.py) and of other engines whose
// tensors are not known here.
var otherMethods = []string{"aqlm", "auto-round", "bitnet", "fouroversix", "fp_quant", "gemma", "gguf", "higgs", "metal", "mxfp8", "nvfp4", "quark", "sinq", "spqr", "vptq", "fp4", "awq_marlin", "gptq_marlin"}

// Read reads the quantization_config of a method, with the release that wrote it and the linear
// layers if a table names them. A value that Transformers refuses is a fault of the config.
func Read(graph *modelgraph.Graph, section Section, method string, version func() string, linear []string) *Format {
	format := &Format{method: method, linear: linear, swapped: graph.Family == "gpt2", flip: graph.Family == "gpt_oss" || strings.HasPrefix(graph.Family, "llama4")}
	rule, known := storedRules[format.method]
	section.Flag("dequantize")
	if near := modelgraph.Nearest(format.method, slices.Sorted(maps.Keys(storedRules)), 1, 2); !known && len(near) > 0 && !slices.Contains(otherMethods, format.method) {
		section.Fail("quant_method", "%q is no method of Transformers 5.24 (did you mean %q?): set the one that wrote the weights", spell.Clip(format.method), near[0])
		return format
	}
	if !known {
		format.missing = "the tensors of this method do not follow from its config here"
		return format
	}
	format.experts, format.inBlock = rule.experts, rule.inBlock
	if before(version(), 5, 0) && !format.flip {
		format.experts = rule.before5
	}
	format.anyStart = before(version(), 5, 21)
	format.readSkipped(section, rule, graph)
	rule.read(format, section)
	return format
}

// before reports a config of a release older than major.minor.
func before(version string, major, minor int) bool {
	var at [2]int
	if count, _ := fmt.Sscanf(version, "%d.%d", &at[0], &at[1]); count < len(at) {
		return false
	}
	return at[0] < major || at[0] == major && at[1] < minor
}

// oneOf reads a field that has one of some values; others are at fault.
func oneOf(section Section, def, name string, values ...string) string {
	got := section.Name(name)
	if got == "" {
		return def
	}
	if !slices.Contains(values, strings.ToLower(got)) {
		section.Fail(name, "%q is not one of %s", spell.Clip(got), strings.Join(values, ", "))
		return def
	}
	return strings.ToLower(got)
}

// groupSize reads the inputs that share a scale; -1: all.
func groupSize(section Section, def int64) int64 {
	const name = "group_size"
	switch {
	case string(section.Members()[name]) == "-1":
		section.Has(name)
		return -1
	case !section.Has(name):
		return def
	}
	return section.Pos(def, name)
}

func (format *Format) one(form string, at sizes, names map[string]string) *storedScheme {
	format.schemes = append(format.schemes, storedScheme{form: storedForms[form], sizes: at, names: names})
	return &format.schemes[len(format.schemes)-1]
}

func bitsOf(section Section, def int64, name string, values ...int64) int64 {
	bits := section.Pos(def, name)
	if !slices.Contains(values, bits) {
		section.Fail(name, "%d is not one of %v", bits, values)
		return def
	}
	return bits
}

// elsewhere refuses fields of AutoAWQ's and GPTQ-for-LLaMa's files that contradict the value that
// Transformers takes. It does not read these names (utils/quantization_config.py: GPTQConfig).
func elsewhere(section Section, at sizes) {
	for _, name := range []string{"w_bit", "wbits", "q_group_size", "groupsize"} {
		is, now := at["bits"], "bits"
		if strings.Contains(name, "group") {
			is, now = at["group"], "group_size"
		}
		if v := string(section.Members()[name]); section.Has(name) && v != fmt.Sprint(is) {
			section.Fail(name, "%s: Transformers does not read this name and takes %d; write it as %q", spell.Short(section.Members()[name]), is, now)
		}
	}
}

func (format *Format) readGPTQ(section Section) {
	if !section.Has("bits") {
		section.Fail("bits", "gptq needs the bits of a weight: add \"bits\": 4, or 2, 3 or 8")
		return
	}
	at := sizes{"bits": bitsOf(section, 4, "bits", 2, 3, 4, 8), "group": groupSize(section, 128)}
	elsewhere(section, at)
	kind := oneOf(section, "gptq", section.Pick([]string{"checkpoint_format", "format"}), "gptq", "gptq_v2", "marlin", "bitblas", "gptq_p")
	if kind != "gptq" && kind != "gptq_v2" {
		format.missing = fmt.Sprintf("the layout %q is not known here", kind)
	}
	format.readDynamic(section, at)
	format.one("gptq", at, nil)
	if lists := section.Members()["modules_in_block_to_quantize"]; section.Has("modules_in_block_to_quantize") {
		var names [][]string
		if json.Unmarshal(lists, &names) != nil {
			section.Fail("modules_in_block_to_quantize", "%s is not a list of lists of names", spell.Short(lists))
		}
		ends := slices.Concat(names...)
		format.skip = append(format.skip, func(module string) bool {
			return !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(module, "."+end) })
		})
	}
	if section.Flag("lm_head") {
		format.inBlock = false
		format.skip = append(format.skip, func(module string) bool { return !numbered(module) && paths.Last(module) != "lm_head" })
	}
}

// readDynamic reads GPTQModel's rules by expressions. The prefix -: leaves modules as they are, +:
// or none gives them other sizes.
func (format *Format) readDynamic(section Section, whole sizes) {
	if !section.Has("dynamic") {
		return
	}
	dynamic := section.Sub("dynamic")
	for _, pattern := range slices.Sorted(maps.Keys(dynamic.Members())) {
		text, leaves := strings.CutPrefix(pattern, "-:")
		matches, ok := matcher(strings.TrimPrefix(text, "+:"), false)
		if !ok {
			format.missing = fmt.Sprintf("the expression %q is not read here", spell.Clip(pattern))
			return
		}
		if leaves {
			format.skip = append(format.skip, matches)
			continue
		}
		own := dynamic.Sub(pattern)
		scheme := format.one("gptq", sizes{"bits": bitsOf(own, whole["bits"], "bits", 2, 3, 4, 8), "group": groupSize(own, whole["group"])}, nil)
		scheme.matches = matches
	}
}

func (format *Format) readAWQ(section Section) {
	form := oneOf(section, "gemm", section.Pick([]string{"version", "format"}), "gemm", "gemv", "gemv_fast", "llm-awq")
	at := sizes{"bits": bitsOf(section, 4, "bits", 2, 3, 4, 8), "group": groupSize(section, 128), "spread": 1}
	elsewhere(section, at)
	if at["group"] == 64 || at["group"] == 32 { // calculate_zeros_width
		at["spread"] = 128 / at["group"]
	}
	if form == "llm-awq" || form != "gemm" && at["bits"] != 4 {
		format.missing = fmt.Sprintf("the layout %q of %d bits is not known here", form, at["bits"])
	}
	format.one("awq "+form, at, nil)
}

func (format *Format) readBitsAndBytes(section Section) {
	four, eight := section.Flag("load_in_4bit"), section.Flag("load_in_8bit")
	switch {
	case four && eight:
		section.Fail("load_in_8bit", "load_in_4bit and load_in_8bit are both true: only one can be, so remove the other")
		return
	case section.Flag("llm_int8_has_fp16_weight"):
		format.missing = "llm_int8_has_fp16_weight keeps 16-bit weights"
		return
	case eight:
		format.one("bnb8", nil, nil)
		return
	}
	storage := oneOf(section, "uint8", "bnb_4bit_quant_storage", "uint8", "int8", "float16", "bfloat16", "float32", "float64")
	names := map[string]string{"type": oneOf(section, "fp4", "bnb_4bit_quant_type", "fp4", "nf4"), "storage": storage}
	form := "bnb4"
	if section.Flag("bnb_4bit_use_double_quant") {
		form = "bnb4 double"
	}
	scheme := format.one(form, sizes{"packed": spell.DType(storage).Bits() / 4}, names)
	scheme.more = func(at sizes, layer linear) { at["state"] = bnbState(layer, names["type"], form != "bnb4") }
}

// bnbState is the length of the text that bitsandbytes keeps with a weight (QuantState.as_dict).
// The offset of nested statistics has 18 to 21 digits by its value; it is taken as 20.
func bnbState(layer linear, kind string, nested bool) int64 {
	dtype := map[modelgraph.DType]string{modelgraph.BF16: "bfloat16", modelgraph.F16: "float16"}[layer.dtype]
	if dtype == "" {
		dtype = "float32"
	}
	text := fmt.Sprintf(`{"quant_type": %q, "blocksize": 64, "dtype": %q, "shape": [%d, %d]}`, kind, dtype, layer.out, layer.in)
	if nested {
		text += `, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.038844101130962372`
	}
	return int64(len(text))
}

func (format *Format) readFP8(section Section) {
	static := oneOf(section, "dynamic", "activation_scheme", "dynamic", "static") == "static"
	scale := "F32"
	if oneOf(section, "float", "scale_fmt", "float", "ue8m0") == "ue8m0" {
		scale = "F8_E8M0"
	}
	block, form := section.Dims("weight_block_size"), "fp8 block"
	at, names := sizes{}, map[string]string{"scale": scale}
	switch _, given := section.Members()["weight_block_size"]; {
	case !given:
		block = []int64{128, 128}
	case !section.Has("weight_block_size"): // null
		form = "fp8 tensor"
	case len(block) != 2 || block[0] < 1 || block[1] < 1:
		section.Fail("weight_block_size", "%v is not two sizes of 1 or more, rows and columns, or null for one scale a tensor", block)
	}
	if len(block) == 2 {
		at["rows"], at["cols"] = block[0], block[1]
	}
	if section.Has("modules_to_convert") {
		format.missing = "modules_to_convert packs embedding tables too"
	}
	scheme := format.one(form, at, names)
	if static {
		scheme.form = append(slices.Clip(scheme.form), storedTensor{"activation_scale", "F32", ""})
		if format.experts == expertsJoined {
			format.schemes[0].sizes["static"] = 1
		}
	}
}

func (format *Format) readPlain(section Section) {
	if format.method == "eetq" {
		oneOf(section, "int8", "weights", "int8")
		format.bias = "F16" // integrations/eetq.py, EetqLinear
		format.one("eetq", nil, nil)
		return
	}
	format.bias = "F32" // integrations/fbgemm_fp8.py, FbgemmFp8Linear
	format.one("fbgemm", nil, nil)
}

func (format *Format) readQuanto(section Section) {
	kind := oneOf(section, "int8", "weights", "float8", "int8", "int4", "int2")
	form, names := "quanto", map[string]string{"data": map[string]string{"int8": "I8", "float8": "F8_E4M3"}[kind]}
	at := sizes{"bits": int64(kind[len(kind)-1] - '0')}
	if kind == "int4" || kind == "int2" {
		form = "quanto packed"
	}
	scheme := format.one(form, at, names)
	scheme.form = append(slices.Clip(scheme.form), storedTensor{"input_scale", "model", ""}, storedTensor{"output_scale", "model", ""})
	scheme.more = func(at sizes, layer linear) { at["group"] = quantoGroup(layer.in) }
}

// quantoGroup is the inputs that share a scale (optimum.quanto, nn/qmodule.py).
func quantoGroup(in int64) int64 {
	group := int64(128)
	if in <= group {
		return in
	}
	for in%group != 0 && group > 32 {
		group -= 32
	}
	if in%group != 0 {
		return in
	}
	return group
}

// readHQQ reads one scheme for all linear layers, or one a tag (the path without model, layers and
// numbers); tags in skip_modules stay.
func (format *Format) readHQQ(section Section) {
	skipped := section.Strs("skip_modules")
	if !section.Has("skip_modules") {
		skipped = []string{"lm_head"}
	}
	format.skip = append(format.skip, func(module string) bool { return slices.Contains(skipped, hqqTag(module)) })
	own := section.Sub("quant_config")
	if own.Has("weight_quant_params") || len(own.Members()) == 0 {
		format.hqqScheme(own)
		return
	}
	for _, tag := range slices.Sorted(maps.Keys(own.Members())) {
		if own.Has(tag) {
			format.hqqScheme(own.Sub(tag)).matches = func(module string) bool { return hqqTag(module) == tag }
		}
	}
}

func hqqTag(module string) string {
	parts := slices.DeleteFunc(strings.Split(module, "."), func(part string) bool {
		return part == "model" || part == "layers" || strings.Trim(part, "0123456789") == ""
	})
	return strings.Join(parts, ".")
}

func (format *Format) hqqScheme(section Section) *storedScheme {
	params := section.Sub("weight_quant_params")
	at := sizes{"bits": bitsOf(params, 4, "nbits", 1, 2, 3, 4, 8), "group": params.Optional(-1, "group_size")}
	form := "hqq"
	rows, float := params.Has("axis") && params.Dim(1, "axis") == 0, params.Flag("view_as_float")
	switch {
	case (rows || float) && at["bits"] == 3 || rows && (float || at["group"] < 0) || section.Has("scale_quant_params") || section.Has("zero_quant_params"):
		format.missing = "this layout of HQQ is not known here"
	case at["bits"] == 3:
		form = "hqq 3"
	case rows:
		form = "hqq rows"
	case float:
		form = "hqq float"
	}
	scheme := format.one(form, at, nil)
	scheme.form = slices.Concat(scheme.form, storedForms["hqq names"])
	scheme.more = func(at sizes, layer linear) {
		at["size"], at["name"] = layer.dtype.Bits()/8, 13 // torch.float16, torch.float32
		if layer.dtype == modelgraph.BF16 {
			at["name"]++
		}
	}
	return scheme
}

// readTorchAO reads the class in torchao's config_to_dict. Version 1 had other tensor classes.
func (format *Format) readTorchAO(section Section) {
	if section.Members()["quant_type"].Kind() == '"' {
		format.missing = fmt.Sprintf("quant_type %s is a name, which Transformers 5 reads no more: torchao's config_to_dict gives the object", spell.Short(section.Members()["quant_type"]))
		return
	}
	kinds := section.Sub("quant_type")
	if section.Flag("include_input_output_embeddings") {
		format.missing = "include_input_output_embeddings packs embedding tables too"
		return
	}
	kind := kinds.Sub("default")
	class, data := kind.Name("_type"), kind.Sub("_data")
	form, at, names := storedForms["torchao "+class], sizes{}, map[string]string{"scales": "out 1", "scale": "model"}
	grain := torchAOGrain(data)
	if grain.Name("_type") == "PerTensor" {
		names["scales"] = "1 1"
	}
	switch class {
	case "Int4WeightOnlyConfig":
		at["group"] = data.Optional(128, "group_size")
		form = storedForms["torchao "+cmp.Or(strings.ToLower(enumName(data, "int4_packing_format")), "plain")]
	case "IntxWeightOnlyConfig", "Int8DynamicActivationIntxWeightConfig":
		at["group"] = -1
		if grain.Name("_type") == "PerGroup" {
			at["group"] = grain.Sub("_data").Optional(32, "group_size")
		}
		if data.Has("weight_scale_dtype") || data.Has("scale_dtype") || !strings.EqualFold(cmp.Or(enumName(data, "intx_packing_format"), "unpacked_to_int8"), "unpacked_to_int8") {
			form = nil
		}
	}
	if data.Has("group_size") && class == "Int8WeightOnlyConfig" {
		form = nil
	}
	if version := kind.Optional(2, "_version"); version != 2 || form == nil {
		format.missing = fmt.Sprintf("the tensors of torchao's %s, version %d, are not known here", cmp.Or(spell.Clip(class), "scheme"), version)
	}
	format.schemes = append(format.schemes, storedScheme{form: form, sizes: at, names: names, keepsUneven: class == "Int4WeightOnlyConfig"})
}

// torchAOGrain is the group that shares a scale: the weights' is the last of two.
func torchAOGrain(data Section) Section {
	name := data.Pick([]string{"weight_granularity", "granularity"})
	if data.Members()[name].Kind() != '[' {
		return data.Sub(name)
	}
	if all := data.Objects(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return data.Sub("") // no field has this name
}

// enumName is a member of an enumeration, as a string or as torchao writes it.
func enumName(data Section, name string) string {
	if data.Members()[name].Kind() == '{' {
		return data.Sub(name).Name("_data")
	}
	return data.Name(name)
}
