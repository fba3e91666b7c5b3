package hf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// explains reports a config that no reader reads and the table may: of a type,
// or of a class of a type, that has no reader.
func (in *release) explains(cfg *config, err error) bool {
	var syn *modelgraph.SyntaxError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.configOf(cfg.name("model_type")) != ""
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		config := in.configOf(cfg.name("model_type"))
		class := in.class(cfg.strs("architectures")[0], config)
		return class != nil && class.Config == config
	}
	return false
}

// instead is a folder's graph, or that of the table where only the table has one.
func (in *release) instead(graph *modelgraph.Graph, err error, cfg *config, dir string, data []byte) (*modelgraph.Graph, error) {
	if !in.explains(cfg, err) {
		return graph, err
	}
	return fromTypes(cfg, folderName(dir), dir, data)
}

// fromTypes builds a config alone by the table of the newest release. The
// layers are known by their sizes alone.
func fromTypes(cfg *config, name, source string, data []byte) (*modelgraph.Graph, error) {
	tree := &typeTree{file: cfg.file, in: newest, ties: make(map[string]string), units: make(map[string]string)}
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	class, err := tree.classOf(kind, names)
	if err != nil {
		return nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" {
		return nil, &typeError{cfg.file, "auto_map", fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	from := &objects{file: cfg.file, in: tree.in}
	root := from.read("", class.Config, plainMembers(cfg), nil)
	if from.err != nil {
		return nil, from.err
	}
	if err := tree.add(class, root, "", nil, true); err != nil {
		return nil, err
	}
	layers := tree.layers(class, dtype)
	graph, err := modelgraph.New(name, layers, tree.tied())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Config, graph.Class, graph.Family = source, data, class.Class, kind
	if given {
		graph.DType = dtype
	}
	graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	graph.AutoClass = tree.in.loader(kind, class.Class)
	graph.Warnings = tree.in.notes(cfg, kind, tree.outermost)
	graph.Warnings = append(graph.Warnings, assumed(class.Class, len(names) > 0, given, dtype)...)
	return graph, nil
}

// notes say where the tensors are from, and that the config may be of a newer
// release.
func (in *release) notes(cfg *config, kind string, outermost bool) []string {
	whole := "weights, ties, buffers and units that are not split are exact"
	if outermost {
		whole = "weights, ties and buffers are exact, the modules of its outermost lists are not split (Transformers names none here)"
	}
	if cfg.has("quantization_config") {
		whole = "unquantised " + whole
	}
	notes := []string{fmt.Sprintf("model_type %q is read from the table of Transformers %s: %s; activations are not counted", clipName(kind), in.name, whole)}
	if version := cfg.name("transformers_version"); newer(version, in.name) {
		notes = append(notes, fmt.Sprintf("the config is of Transformers %q: the newest table is of %s, and a newer release may build other tensors", clipName(version), in.name))
	}
	return notes
}

// newer compares the first two numbers of versions.
func newer(version, than string) bool {
	var x, y [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &x[0], &x[1]); n < 1 {
		return false
	}
	if n, _ := fmt.Sscanf(than, "%d.%d", &y[0], &y[1]); n < 1 {
		return false
	}
	return slices.Compare(x[:], y[:]) > 0
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

// classOf is the class that a config means.
func (tree *typeTree) classOf(kind string, names []string) (*typeClass, error) {
	in := tree.in
	if in.configOf(kind) == "" {
		return nil, &typeError{tree.file, "model_type", unknownType(kind) + fmt.Sprintf(", and Transformers %s has no such type", in.name)}
	}
	if len(names) > 0 {
		class := in.class(names[0], in.configOf(kind))
		if class == nil || class.Config != in.configOf(kind) {
			return nil, &typeError{tree.file, "architectures[0]", fmt.Sprintf("%q with model_type %q is not in the table of Transformers %s", clipName(names[0]), clipName(kind), in.name)}
		}
		return class, nil
	}
	for _, auto := range autoOrder {
		if class := in.class(in.auto(kind, auto), in.configOf(kind)); class != nil && class.Config == in.configOf(kind) {
			return class, nil
		}
	}
	return nil, &typeError{tree.file, "model_type", fmt.Sprintf("%q is not in the table of Transformers %s", clipName(kind), in.name)}
}

// add adds the tensors of a class below a module. key is the module's place;
// joins: the model around it takes over its classes that are not split, as
// modeling_utils.py, post_init, does for direct children.
func (tree *typeTree) add(class *typeClass, object *typeObject, module string, key []int, joins bool) error {
	const deepest = 12
	tree.depth++
	if tree.depth > deepest {
		return &typeError{tree.file, object.prefix + "model_type", "the models inside are nested too deeply"}
	}
	defer func() { tree.depth-- }()
	of := &evaluation{object: object, rules: class.Rules, setInside: class.Sets, known: make(map[string]any)}
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
	var present [][]any
	for _, entry := range class.Entries {
		kind, _ := entry[0].(string)
		pattern, _ := entry[1].(string)
		ordered(places, pattern)
		all := tree.numbers(class, of, pattern)
		if tree.visited += len(all); tree.visited > maxTensors {
			return &typeError{tree.file, object.prefix + of.place, fmt.Sprintf("the model has more than %d tensors", maxTensors)}
		}
		there := false
		for _, stars := range all {
			if !truth(of.eval(entry[2], stars)) {
				continue
			}
			if !there {
				there, present = true, append(present, entry)
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
		}
		if of.err != nil {
			return tree.unexplained(of, class, fmt.Sprintf("%q cannot be computed (%v)", pattern, of.err))
		}
	}
	return tree.together(class, of, present)
}

// ordered gives each part of a name its place among those of the class.
func ordered(places map[string]int, pattern string) {
	for path := range prefixes(pattern) {
		if _, ok := places[path]; !ok {
			places[path] = len(places)
		}
	}
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
		if of.err == nil && (!ok || n < 0 || n == 0 && !isBuffer && !of.standard(dim) || n > largest || n != math.Trunc(n)) {
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
	object, usual := of.object, true // usual: of the types that the builds had
	for part := range strings.SplitSeq(strings.TrimSuffix(at, "."), ".") {
		if part == "" {
			continue
		}
		above := object
		if object = object.inner[part]; object == nil {
			of.place = at
			of.fail("there is no object %q", at)
			return nil
		}
		usual = usual && object.class.Config == above.class.Inner[part].Config
	}
	if auto != "" {
		class = tree.in.auto(object.class.Type, auto)
	}
	inner := tree.in.class(class, object.class.Config)
	if inner == nil {
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%q has no %s in the table of Transformers %s", clipName(object.class.Type), clipName(class), tree.in.name)}
	}
	if !usual && inner.Config != object.class.Config { // its tensors are functions of other fields
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%q: the table of Transformers %s has only the %s of a %s here", clipName(object.class.Type), tree.in.name, class, inner.Config)}
	}
	tree.units[name] = class
	return tree.add(inner, of.sets(at, object), name, key, joins)
}
