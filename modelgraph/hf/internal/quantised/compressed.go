package quantised

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// readSkipped reads the unchanged modules by the rule of Transformers' should_convert_module. A
// name matches an end, or whole leading parts as a Python expression (before 5.21 any start).
// torchao compares the weight's name.
func (format *Format) readSkipped(section Section, rule storedRule, graph *modelgraph.Graph) {
	var names []string
	given, leaf := false, ""
	for _, field := range rule.skip {
		if section.Has(field) && !given {
			names, given = section.Strs(field), true
		}
	}
	if rule.defaults == "always" || rule.defaults == "absent" && !given {
		for _, module := range unconverted(graph) {
			names = append(names, regexp.QuoteMeta(module))
		}
	}
	if format.method == "torchao" {
		leaf = ".weight"
	}
	for _, name := range names {
		leave(format, name, leaf)
	}
	if rule.keepsTies {
		format.skip = append(format.skip, func(module string) bool {
			return slices.ContainsFunc(graph.Ties, func(tie []string) bool { return slices.Contains(tie, module+".weight") })
		})
	}
}

// leave leaves the modules that a name of the list matches.
func leave(format *Format, name, leaf string) {
	start, err := regexp.Compile("^(?:" + name + ")")
	if err != nil {
		format.missing = fmt.Sprintf("the expression %q is not read here", spell.Clip(name))
		return
	}
	whole := regexp.MustCompile("^(?:" + name + `)(?:\.|$)`)
	format.skip = append(format.skip, func(module string) bool {
		return slices.ContainsFunc(spellings(module), func(text string) bool {
			text += leaf
			return strings.HasSuffix(text, name) || whole.MatchString(text) || format.anyStart && start.MatchString(text) || strings.HasSuffix(start.FindString(text), ".")
		})
	})
}

// unconverted are the modules that Transformers skips if a config lists none (quantizers/base.py,
// get_keys_to_not_convert): tied ones, the output embedding, and the last parameter's module.
func unconverted(graph *modelgraph.Graph) []string {
	var names []string
	for _, tie := range graph.Ties {
		for _, name := range tie {
			names = append(names, strings.TrimSuffix(name, ".weight"))
		}
	}
	last, words := "", int64(0)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if table, ok := layer.Op.(modelgraph.Embedding); ok {
			words = max(words, table.Vocab)
		}
		if count := len(layer.Params); count > 0 {
			last = modelgraph.FullName(layer.Name, layer.Params[count-1].Name)
		}
	}
	for i := range graph.Layers {
		if head, ok := graph.Layers[i].Op.(modelgraph.Head); ok && head.Vocab == words {
			names = append(names, graph.Layers[i].Name)
		}
	}
	return append(names, strings.TrimSuffix(last, ".weight"))
}

// spellings are a module's name, and its names before Transformers 4.52 in models with towers.
func spellings(module string) []string {
	names := []string{module}
	inner, ok := strings.CutPrefix(module, "model.")
	switch first, _, _ := strings.Cut(inner, "."); {
	case !ok || first == "layers" || first == "decoder" || first == "encoder":
	default:
		names = append(names, inner)
	}
	if text, ok := strings.CutPrefix(inner, "language_model."); ok {
		names = append(names, "language_model.model."+text, "model."+text)
	}
	if module == "lm_head" {
		names = append(names, "language_model.lm_head")
	}
	return names
}

// numbered reports a module inside a block.
func numbered(module string) bool {
	return slices.ContainsFunc(strings.Split(module, "."), func(part string) bool {
		_, err := strconv.Atoi(part)
		return err == nil
	})
}

// matcher is a Python expression that a module's name starts with; whole: that is the whole name.
func matcher(pattern string, whole bool) (matches func(module string) bool, ok bool) {
	pattern = "^(?:" + pattern + ")"
	if whole {
		pattern += "$"
	}
	expr, err := regexp.Compile(pattern)
	if err != nil {
		return nil, false
	}
	return func(module string) bool { return slices.ContainsFunc(spellings(module), expr.MatchString) }, true
}

// target is a name of compressed-tensors (utils/match.py, match_name): an expression after re:, a
// module, or a class. Linear is the class that is known here.
func (format *Format) target(name string) func(module string) bool {
	if pattern, found := strings.CutPrefix(name, "re:"); found {
		matches, ok := matcher(pattern, false)
		if !ok {
			format.missing = fmt.Sprintf("the expression %q is not read here", spell.Clip(name))
			return func(string) bool { return false }
		}
		return matches
	}
	return func(module string) bool { return name == "Linear" || slices.Contains(spellings(module), name) }
}

func anyOf(all []func(string) bool) func(module string) bool {
	return func(module string) bool {
		return slices.ContainsFunc(all, func(matches func(string) bool) bool { return matches(module) })
	}
}

// readCompressed reads the groups of compressed-tensors.
func (format *Format) readCompressed(section Section) {
	for _, name := range section.Strs("ignore") {
		format.skip = append(format.skip, format.target(name))
	}
	if status := section.Name("quantization_status"); status != "" && status != "compressed" {
		format.missing = fmt.Sprintf("quantization_status %q leaves dense weights", spell.Clip(status))
	}
	if sparse := section.Sub("sparsity_config").Name("format"); sparse != "" && sparse != "dense" {
		format.missing = fmt.Sprintf("sparsity_config's %q is not known here", spell.Clip(sparse))
	}
	if cache := section.Sub("kv_cache_scheme"); len(cache.Members()) > 0 && string(cache.Members()["dynamic"]) != "true" {
		format.cache = []storedTensor{{"k_scale", "model", "1"}, {"v_scale", "model", "1"}}
	}
	whole := section.Name("format")
	groups := section.Sub("config_groups")
	for _, name := range slices.Sorted(maps.Keys(groups.Members())) {
		group := groups.Sub(name)
		var targets []func(string) bool
		for _, target := range group.Strs("targets") {
			targets = append(targets, format.target(target))
		}
		scheme := storedScheme{matches: anyOf(targets)}
		if group.Has("weights") {
			format.compressed(&scheme, cmp.Or(group.Name("format"), whole), group)
		}
		format.schemes = append(format.schemes, scheme)
	}
}

// compressed is one group: its weights, and the static scales of activations.
func (format *Format) compressed(scheme *storedScheme, kind string, group Section) {
	weights := group.Sub("weights")
	float := oneOf(weights, "int", "type", "int", "float") == "float"
	bits := bitsOf(weights, 8, "num_bits", 1, 2, 3, 4, 5, 6, 7, 8, 16)
	data := "I8"
	if float {
		data = "F8_E4M3"
	}
	scheme.sizes, scheme.names = sizes{"bits": bits}, map[string]string{"data": data}
	strategy := format.scales(scheme, weights)
	uneven := weights.Has("symmetric") && !weights.Bool(true, "symmetric")
	form := compressedForm(kind, bits, float)
	if form == "" {
		format.missing = fmt.Sprintf("the format %q of %d bits is not known here", spell.Clip(kind), bits)
	}
	scheme.form = slices.Clip(storedForms[form])
	switch grouped := strategy == "group" || strategy == "channel"; {
	case form == "ct naive" && uneven:
		scheme.form = append(scheme.form, storedTensor{"weight_zero_point", "$data", scheme.names["scales"]})
	case form == "ct pack" && uneven && grouped:
		scheme.form = append(scheme.form, storedTensor{"weight_zero_point", "I32", strings.Replace(scheme.names["scales"], "out", "out*bits^32", 1)})
	}
	if form == "ct pack" && string(weights.Members()["actorder"]) == `"group"` {
		scheme.form = append(scheme.form, storedTensor{"weight_g_idx", "I32", "in"}) // before 0.20
	}
	scheme.activations(group)
}

// compressedForm is the form of a format; empty if it is not known.
func compressedForm(kind string, bits int64, float bool) string {
	switch kind {
	case "pack-quantized":
		if bits <= 8 && !float {
			return "ct pack"
		}
	case "nvfp4-pack-quantized", "mxfp4-pack-quantized":
		if bits == 4 && float {
			return "ct " + strings.TrimSuffix(kind, "-pack-quantized")
		}
	case "int-quantized", "float-quantized", "naive-quantized":
		if bits == 8 {
			return "ct naive"
		}
	}
	return ""
}

// scales sets the shape of the scales by the strategy, and gives the strategy.
func (format *Format) scales(scheme *storedScheme, weights Section) string {
	strategy := weights.Name("strategy")
	if weights.Has("group_size") {
		scheme.sizes["group"] = groupSize(weights, -1)
	}
	if strategy == "" { // quantization_args.py, validate_model_after
		strategy = "tensor"
		if scheme.sizes["group"] != 0 {
			strategy = map[bool]string{true: "group", false: "channel"}[scheme.sizes["group"] > 0]
		}
	}
	if strategy == "group" && scheme.sizes["group"] < 1 { // quantization_args.py refuses it too
		weights.Fail("group_size", "the strategy \"group\" needs the inputs that share a scale: set \"group_size\": 128, say, or the strategy \"channel\"")
	}
	shapes := map[string]string{"tensor": "1", "channel": "out 1", "group": "out in^group", "tensor_group": "out in^group", "block": "out^rows in^cols"}
	scheme.names["scales"] = shapes[strategy]
	if block := weights.Dims("block_structure"); strategy == "block" && len(block) == 2 {
		scheme.sizes["rows"], scheme.sizes["cols"] = block[0], block[1]
	}
	if shapes[strategy] == "" {
		format.missing = fmt.Sprintf("the strategy %q of weights is not known here", spell.Clip(strategy))
	}
	return strategy
}

func (scheme *storedScheme) activations(group Section) {
	for _, kind := range []string{"input", "output"} {
		field := kind + "_activations"
		if !group.Has(field) {
			continue
		}
		args := group.Sub(field)
		raw, strategy := string(args.Members()["dynamic"]), args.Name("strategy")
		if strategy == "tensor_group" {
			scheme.form = append(scheme.form, storedTensor{kind + "_global_scale", "F32", "1"})
		}
		if raw == "true" || raw == `"local"` || strategy == "tensor_group" {
			continue
		}
		scheme.form = append(scheme.form, storedTensor{kind + "_scale", "model", "1"})
		if args.Has("symmetric") && !args.Bool(true, "symmetric") {
			scheme.form = append(scheme.form, storedTensor{kind + "_zero_point", "I8", "1"})
		}
	}
}

// readModelOpt reads configs of NVIDIA's Model Optimizer; ignore has names with stars. Transformers
// reads no such config and loads no such weights; engines do.
func (format *Format) readModelOpt(section Section) {
	for _, field := range []string{"ignore", "exclude_modules"} {
		for _, name := range section.Strs(field) {
			pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name))
			matches, _ := matcher(pattern+`(?:\..*)?`, true)
			format.skip = append(format.skip, matches)
		}
	}
	algo := strings.ToLower(section.Name("quant_algo"))
	if storedForms["modelopt "+algo] == nil {
		format.missing = fmt.Sprintf("quant_algo %q is not known here", spell.Clip(algo))
		return
	}
	format.flip = format.flip || algo == "w8a8_sq_per_channel" // its experts' scales are not known here
	format.one("modelopt "+algo, sizes{"group": section.Optional(16, "group_size")}, nil)
}
