package hf

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// explains reports a config that no reader reads and the table may: of a type,
// or of a class of a type, that has no reader.
func (in *release) explains(cfg *config, err error) bool {
	var syn *modelgraph.SyntaxError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.configOf(cfg.name("model_type")) != ""
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		class := line[typeClass](in, "class", cfg.strs("architectures")[0])
		return class != nil && class.Config == in.configOf(cfg.name("model_type"))
	}
	return false
}

// graph is that of the tensors of a config alone. The layers are known by their
// sizes alone.
func (in *release) graph(cfg *config, tree *typeTree, class *typeClass, name, source string) (*modelgraph.Graph, error) {
	kind, named := cfg.name("model_type"), len(cfg.strs("architectures")) > 0
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	graph, err := modelgraph.New(name, tree.layers(class, dtype), tree.tied())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Class, graph.Family = source, class.Class, kind
	if given {
		graph.DType = dtype
	}
	graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	graph.Warnings = append(tree.warnings, fmt.Sprintf("model_type %q: its tensors are from the table of Transformers %s; weights only, peaks of training and inference are not known", clipName(kind), in.name))
	graph.Warnings = append(graph.Warnings, assumed(class.Class, named, given, dtype)...)
	return graph, nil
}

// treeOf are the tensors of a config by the table of a release.
func (in *release) treeOf(cfg *config) (*typeTree, *typeClass, error) {
	tree := &typeTree{file: cfg.file, in: in, ties: make(map[string]string), units: make(map[string]string)}
	class, err := tree.classOf(cfg.name("model_type"), cfg.strs("architectures"))
	if err != nil {
		return nil, nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" {
		return nil, nil, &typeError{cfg.file, "auto_map", fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	from := &objects{file: cfg.file, in: in}
	root := from.read("", class.Config, plainMembers(cfg), nil)
	if from.err != nil {
		return nil, class, from.err
	}
	return tree, class, tree.add(class, root, "", nil, true)
}

// assumed says what a config alone leaves open.
func assumed(class string, named, given bool, dtype modelgraph.DType) (notes []string) {
	if !named {
		notes = append(notes, fmt.Sprintf("the config names no architectures: %s the class is taken to be %s", fromConfigAlone, class))
	}
	if !given {
		notes = append(notes, fmt.Sprintf("the config names no dtype: %s its weights are counted as %v, as Transformers' from_config makes them (from_pretrained takes the checkpoint's type)", fromConfigAlone, dtype))
	}
	return notes
}

// typeTree collects the tensors of a model.
type typeTree struct {
	file     string
	in       *release
	tensors  []typeTensor
	ties     map[string]string // name to the one that it is
	units    map[string]string // modules that one device may have to hold whole, and their classes
	noSplit  []string          // classes of those that it must; a unit without a class is one
	warnings []string
	depth    int
}

// typeTensor is a parameter or a buffer. Its key sorts it in module order.
type typeTensor struct {
	name       string
	key        []int
	shape      []int64
	dtype      string
	buffer     bool
	persistent bool
}

// classOf is the class that a config means.
func (tree *typeTree) classOf(kind string, names []string) (*typeClass, error) {
	in := tree.in
	if in.configOf(kind) == "" {
		return nil, &typeError{tree.file, "model_type", unknownType(kind) + fmt.Sprintf(", and Transformers %s has no such type", in.name)}
	}
	if len(names) > 0 {
		class := line[typeClass](in, "class", names[0])
		if class == nil || class.Config != in.configOf(kind) {
			return nil, &typeError{tree.file, "architectures[0]", fmt.Sprintf("%q with model_type %q is not in the table of Transformers %s", clipName(names[0]), clipName(kind), in.name)}
		}
		return class, nil
	}
	for _, auto := range autoOrder {
		if class := line[typeClass](in, "class", in.auto(kind, auto)); class != nil && class.Config == in.configOf(kind) {
			return class, nil
		}
	}
	return nil, &typeError{tree.file, "model_type", fmt.Sprintf("%q is not in the table of Transformers %s", clipName(kind), in.name)}
}

// maxTensors bounds a model.
const maxTensors = 2_000_000

// add adds the tensors of a class below a module. key is the module's place;
// joins: the model around it takes over its classes that are not split, as
// modeling_utils.py, post_init, does for direct children.
func (tree *typeTree) add(class *typeClass, object *typeObject, module string, key []int, joins bool) error {
	const deepest = 12
	if tree.depth++; tree.depth > deepest {
		return &typeError{tree.file, object.prefix + "model_type", "the models inside are nested too deeply"}
	}
	defer func() { tree.depth-- }()
	of := &evaluation{object: object, rules: class.Rules, known: make(map[string]any)}
	if of.rules == nil {
		of.rules = map[string]any{}
	}
	if err := tree.allowed(class, of); err != nil {
		return err
	}
	if joins {
		tree.noSplit = append(tree.noSplit, class.NoSplit...)
	}
	places := make(map[string]int) // of the parts of names
	for _, entry := range class.Entries {
		kind, _ := entry[0].(string)
		pattern, _ := entry[1].(string)
		ordered(places, pattern)
		for _, stars := range tree.numbers(class, of, pattern) {
			if !truth(of.eval(entry[2], stars)) {
				continue
			}
			name, at := place(pattern, stars, places)
			at = slices.Concat(key, at)
			var err error
			if kind == "i" {
				err = tree.include(entry[3:], of, modelgraph.FullName(module, name), at, joins && !strings.Contains(name, "."))
			} else {
				err = tree.entry(kind, entry[3:], of, stars, module, name, at, joins)
			}
			if err != nil {
				return err
			}
			if len(tree.tensors) > maxTensors {
				return &typeError{tree.file, of.place, fmt.Sprintf("the model has more than %d tensors", maxTensors)}
			}
		}
		if of.err != nil {
			return tree.unexplained(of, class, fmt.Sprintf("%q cannot be computed (%v)", pattern, of.err))
		}
	}
	return nil
}

// ordered gives each part of a name its place among those of the class.
func ordered(places map[string]int, pattern string) {
	for i := range len(pattern) + 1 {
		if i == len(pattern) || pattern[i] == '.' {
			if _, ok := places[pattern[:i]]; !ok {
				places[pattern[:i]] = len(places)
			}
		}
	}
}

func (tree *typeTree) unexplained(of *evaluation, class *typeClass, why string) error {
	field := of.object.prefix + of.place
	said := ""
	if v, ok := of.object.get(of.place); ok {
		said = fmt.Sprintf("%.40v: ", v)
	}
	return &typeError{tree.file, field, fmt.Sprintf("%sthe table of Transformers %s does not say what a %s is then: %s", said, tree.in.name, class.Class, why)}
}

// allowed refuses configs unlike every build that made the table.
func (tree *typeTree) allowed(class *typeClass, of *evaluation) error {
	for _, path := range class.Unread {
		if of.object.unread(path) {
			of.place = path
			return tree.unexplained(of, class, "no build had this field")
		}
	}
	for _, path := range class.Acts {
		if name, ok := of.find(path); ok {
			text, _ := name.(string)
			standard := of.object.standard(path)
			if text != standard && (tree.in.parametric(text) || tree.in.parametric(standard)) {
				of.place = path
				return tree.unexplained(of, class, "the activation holds tensors")
			}
		}
	}
	if err := tree.computed(class, of); err != nil {
		return err
	}
	return tree.conditions(class, of)
}

// computed refuses a value of the file for a field that the table computes from
// other fields alone, unless both are the same: some classes take the file's
// value, others overwrite it, and no build had it.
func (tree *typeTree) computed(class *typeClass, of *evaluation) error {
	for _, path := range slices.Sorted(maps.Keys(class.Rules)) {
		v, differs := of.object.differs(path)
		if !differs || reads(class.Rules[path], path) {
			continue
		}
		made, ok := of.find(path)
		if of.err != nil || !ok || !alike(v, made) {
			of.err, of.place = nil, path
			return tree.unexplained(of, class, fmt.Sprintf("%s computes this field from others", class.Config))
		}
	}
	return nil
}

// conditions refuses texts and outcomes of conditions that no build had.
func (tree *typeTree) conditions(class *typeClass, of *evaluation) error {
	file := &evaluation{object: of.object}
	at := map[any]*evaluation{true: file, false: of}
	for _, rule := range class.Texts {
		path, _ := rule[1].(string)
		v, ok := at[rule[0]].find(path)
		if ok && !allTexts(v, rule[2]) {
			of.place = path
			return tree.unexplained(of, class, "no build had this value")
		}
	}
	for _, rule := range class.Held {
		on := at[rule[0]]
		v := on.eval(rule[1], nil)
		if on.err == nil && truth(v) != truth(rule[2]) {
			of.place = on.place
			return tree.unexplained(of, class, "no build was like it")
		}
		on.err = nil
	}
	return nil
}

// allTexts reports that a text, or every text of a list, is one of values.
func allTexts(v, values any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		if _, text := x.(string); !text {
			continue
		}
		if yes, _ := ofTwo("in", x, values); yes != true {
			return false
		}
	}
	return true
}

// numbers are the numbers that a name with stars has.
func (tree *typeTree) numbers(class *typeClass, of *evaluation, pattern string) [][]int {
	all := [][]int{nil}
	for at, part := 0, 0; at <= len(pattern); at = part + 1 {
		part = at + strings.IndexByte(pattern[at:]+".", '.')
		if pattern[at:part] != "*" {
			continue
		}
		var next [][]int
		for _, outer := range all {
			count, _ := number(of.eval(class.Rounds[pattern[:part]], outer))
			if of.err != nil { // Of a module that is not there.
				of.err, count = nil, 0
			}
			if count > maxRounds || len(next) > maxTensors {
				of.fail("there are too many")
				return nil
			}
			for i := range int(max(count, 0)) {
				next = append(next, append(slices.Clone(outer), i))
			}
		}
		all = next
	}
	return all
}

// place fills in the stars of a name. The key has the place of each part among
// those of the class, and the numbers.
func place(pattern string, stars []int, places map[string]int) (name string, key []int) {
	parts := strings.Split(pattern, ".")
	end := -1
	for i, part := range parts {
		end += 1 + len(part)
		key = append(key, places[pattern[:end]])
		if part == "*" {
			key = append(key, stars[0])
			parts[i], stars = fmt.Sprint(stars[0]), stars[1:]
		}
	}
	return strings.Join(parts, "."), key
}

// entry adds one entry.
func (tree *typeTree) entry(kind string, rest []any, of *evaluation, stars []int, module, name string, key []int, joins bool) error {
	name = modelgraph.FullName(module, name)
	switch kind {
	case "p", "b":
		return tree.tensor(kind == "b", rest, of, stars, name, key)
	case "n":
		class := ""
		if len(rest) > 0 {
			class, _ = rest[0].(string)
		}
		if class != "" || joins {
			tree.units[name] = class
		}
	case "t":
		owner, _ := of.eval(rest[0], stars).(string)
		tree.ties[name] = modelgraph.FullName(module, owner)
	}
	return nil
}

func (tree *typeTree) tensor(isBuffer bool, rest []any, of *evaluation, stars []int, name string, key []int) error {
	dims, _ := rest[0].([]any)
	dtype, _ := rest[1].(string)
	t := typeTensor{name: name, key: key, dtype: dtype, buffer: isBuffer, shape: make([]int64, len(dims))}
	if isBuffer {
		t.persistent = truth(rest[2])
	}
	const largest = 1 << 50
	for i, dim := range dims {
		n, ok := number(of.eval(dim, stars))
		if of.err == nil && (!ok || n < 0 || n > largest || n != math.Trunc(n)) {
			of.fail("size %v of %q", n, name)
		}
		t.shape[i] = int64(n)
	}
	tree.tensors = append(tree.tensors, t)
	return nil
}

// include adds a model inside another.
func (tree *typeTree) include(rest []any, of *evaluation, name string, key []int, joins bool) error {
	at, _ := rest[0].(string)
	auto, _ := rest[1].(string)
	class, _ := rest[2].(string)
	object := of.object
	for part := range strings.SplitSeq(strings.TrimSuffix(at, "."), ".") {
		if part == "" {
			continue
		}
		if object = object.inner[part]; object == nil {
			of.place = at
			of.fail("there is no object %q", at)
			return nil
		}
	}
	if auto != "" {
		class = tree.in.auto(object.class.Type, auto)
	}
	inner := line[typeClass](tree.in, "class", class)
	if inner == nil {
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%q has no %s in the table of Transformers %s", clipName(object.class.Type), clipName(class), tree.in.name)}
	}
	tree.units[name] = class
	return tree.add(inner, object, name, key, joins)
}

// tied are the groups of names that share a tensor, the owner first.
func (tree *typeTree) tied() [][]string {
	root := func(name string) string {
		for range len(tree.ties) {
			owner, ok := tree.ties[name]
			if !ok {
				break
			}
			name = owner
		}
		return name
	}
	groups := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(tree.ties)) {
		owner := root(name)
		groups[owner] = append(groups[owner], name)
	}
	var out [][]string
	for _, owner := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, append([]string{owner}, groups[owner]...))
	}
	return out
}

// layers makes a layer for each module that holds tensors, as [listed.layers]
// does.
func (tree *typeTree) layers(class *typeClass, dtype modelgraph.DType) []modelgraph.Layer {
	slices.SortStableFunc(tree.tensors, func(x, y typeTensor) int { return slices.Compare(x.key, y.key) })
	maps.DeleteFunc(tree.units, func(_, class string) bool { return class != "" && !slices.Contains(tree.noSplit, class) })
	unit := tree.unit
	if len(tree.units) == 0 {
		names := &safetensors.Checkpoint{Tensors: make([]safetensors.Tensor, len(tree.tensors))}
		for i := range tree.tensors {
			names.Tensors[i].Name = tree.tensors[i].name
		}
		lists := newTree(names)
		unit = func(name string) string { return lists.unit(parent(name)) }
		tree.warnings = append(tree.warnings, "Transformers does not say which modules of "+class.Class+" must not be split: those of its outermost lists are kept whole")
	}
	above := tree.above()
	keep := class.float32(dtype)
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for i := range tree.tensors {
		t := &tree.tensors[i]
		u, module := unit(t.name), parent(t.name)
		if u == "" && (module == "" || above[module]) {
			module = t.name
		}
		j, ok := at[module]
		if !ok {
			j = len(layers)
			at[module] = j
			layers = append(layers, modelgraph.Layer{Name: module, Op: modelgraph.Opaque{}, Unit: u})
		}
		made := modelgraph.Tensor{Name: strings.TrimPrefix(strings.TrimPrefix(t.name, module), "."), Shape: t.shape, DType: dtype}
		if t.dtype != "" {
			made.DType = typeNamed(t.dtype)
		} else if keep != nil && !t.buffer && keep.MatchString(t.name) {
			made.DType = modelgraph.F32
		}
		if t.buffer {
			made.Persistent = t.persistent
			layers[j].Buffers = append(layers[j].Buffers, made)
		} else {
			layers[j].Params = append(layers[j].Params, made)
		}
	}
	return layers
}

// above are the modules that have modules with tensors.
func (tree *typeTree) above() map[string]bool {
	above := make(map[string]bool)
	for i := range tree.tensors {
		for up := parent(parent(tree.tensors[i].name)); !above[up]; up = parent(up) {
			above[up] = true
		}
	}
	return above
}

// unit is the outermost module around a tensor that is not split.
func (tree *typeTree) unit(name string) string {
	for i := range name {
		if name[i] != '.' {
			continue
		}
		if _, ok := tree.units[name[:i]]; ok {
			return name[:i]
		}
	}
	return ""
}

// float32 is an expression for parameters that stay in that type.
func (class *typeClass) float32(dtype modelgraph.DType) *regexp.Regexp {
	var names []string
	switch dtype {
	case modelgraph.F16:
		names = slices.Concat(class.Float32, class.Strict)
	case modelgraph.BF16:
		names = class.Strict
	}
	expr, err := regexp.Compile(strings.ReplaceAll(strings.Join(names, "|"), "*", ".*"))
	if len(names) == 0 || err != nil {
		return nil
	}
	return expr
}
