package hf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// notKnown is in the error of a reader that does not know a field's effect.
const notKnown = "not known here"

// explains reports a config without a reader, by its type or class, which the table may read.
func (in *release) explains(cfg *config, err error) bool {
	var syn *modelgraph.SyntaxError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.configOf(cfg.name("model_type")) != ""
	case errors.As(err, &syn) && strings.Contains(syn.Msg, notKnown):
		_, _, fault := in.treeOf(cfg)
		return fault == nil
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		config := in.configOf(cfg.name("model_type"))
		class := in.class(cfg.strs("architectures")[0], config)
		return class != nil && class.Config == config
	}
	return false
}

// graph is the graph of a config alone. The layers are known by their sizes alone.
func (in *release) graph(cfg *config, tree *typeTree, class *typeClass, name, source string) (*modelgraph.Graph, error) {
	kind, named := cfg.name("model_type"), len(cfg.strs("architectures")) > 0
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	graph, operates := tree.operatingGraph(class, dtype, name)
	if !operates {
		var err error
		if graph, err = modelgraph.New(name, tree.layers(class, dtype, nil), tree.tied()); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.file, err)
		}
	}
	if operates {
		addTapes(tree, class, graph.Layers, false)
	}
	if err := tree.join(graph); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Class, graph.Family = source, class.Class, kind
	if given {
		graph.DType = dtype
	}
	graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	if operates {
		graph.MaxSeq = tree.root.longest()
		graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their operations' sizes, not by their formulas", clipName(kind))}
	}
	graph.AutoClass = in.loader(kind, class.Class)
	if own := in.native(cfg); own != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("auto_map: with trust_remote_code, Transformers builds a %q of the repository's own code, which may have other tensors; without, its own %s, which is counted", clipName(own), class.Class))
	}
	graph.Warnings = slices.Concat(graph.Warnings, []string{in.note(cfg, kind, tree.outermost, operates)}, assumed(class.Class, named, given, dtype), tree.root.misspelt())
	return graph, nil
}

// note names the table that the tensors are from.
func (in *release) note(cfg *config, kind string, outermost, operates bool) string {
	whole := "weights, ties, buffers and units that are not split are exact"
	if outermost {
		whole = "weights, ties and buffers are exact, the modules of its outermost lists are not split (Transformers names none here)"
	}
	if cfg.has("quantization_config") {
		whole = "unquantised " + whole
	}
	rest := "activations are not counted (devmap.export(module) describes them), and no map was tried (devmap check --run does)"
	if operates {
		rest = fmt.Sprintf("what its layers compute is experimental: as devmap.export sees it in Transformers %s, on small models", newest.name)
	}
	return fmt.Sprintf("model_type %q is read from the table of Transformers %s: %s; %s", clipName(kind), in.name, whole, rest)
}

// treeOf are the tensors of a config by the table of a release.
func (in *release) treeOf(cfg *config) (*typeTree, *typeClass, error) {
	return in.treeAs(cfg, cfg.strs("architectures"))
}

// treeAs is the tree and class of the first of names, else of the class that the config means.
func (in *release) treeAs(cfg *config, names []string) (*typeTree, *typeClass, error) {
	tree := &typeTree{file: cfg.file, in: in, ties: make(map[string]string), units: make(map[string]string)}
	if in.native(cfg) != "" {
		names = nil
	}
	class, err := tree.classOf(cfg.name("model_type"), names)
	if err != nil {
		return nil, nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" && in.native(cfg) == "" {
		return nil, nil, &typeError{cfg.file, "auto_map", fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	from := &objects{file: cfg.file, in: in}
	root := from.read("", class.Config, plainMembers(cfg), nil)
	if from.err != nil {
		return nil, class, from.err
	}
	if pinned := in.pinnedClass(class.Class, root); pinned != nil {
		class = pinned
	}
	tree.wide = class.float32Names(loaded(cfg))
	tree.root = root
	err = tree.add(class, root, "", nil, true)
	return tree, class, err
}

// native is the class of a repository's code if architectures and auto_map name it, and the release
// has the type but no such class. Without trust_remote_code, Transformers builds its own class of
// the type.
func (in *release) native(cfg *config) string {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if len(names) == 0 || in.configOf(kind) == "" || in.makes(kind, names[0]) || ownCode(cfg, nil) != names[0] {
		return ""
	}
	return names[0]
}

// assumed lists values that a config alone leaves open.
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

// add adds the tensors of a class below a module. key is the module's place. With joins, the model
// around it takes over its classes that are not split, as modeling_utils.py, post_init, does for
// direct children.
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
	unknown := computed(tree, class, of)
	if err := cmp.Or(tree.allowed(class, of), unknown); err != nil {
		return err
	}
	if len(of.contested) > 0 {
		return either(tree, class, of, module, key, joins)
	}
	return tree.entries(class, of, module, key, joins)
}

// entries adds the entries of a class.
func (tree *typeTree) entries(class *typeClass, of *evaluation, module string, key []int, joins bool) error {
	if joins {
		tree.noSplit = append(tree.noSplit, class.NoSplit...)
	}
	places := make(map[string]int) // of the parts of names
	var present [][]any
	for _, entry := range class.numbered(of) {
		kind, _ := entry[0].(string)
		pattern, _ := entry[1].(string)
		parts := ordered(places, pattern)
		all := tree.numbers(class, of, pattern)
		if tree.visited += len(all); tree.visited > maxTensors {
			return &typeError{tree.file, of.object.prefix + of.place, fmt.Sprintf("the model has more than %d tensors", maxTensors)}
		}
		there := false
		for _, stars := range all {
			if !truth(of.eval(entry[2], stars)) {
				continue
			}
			if !there {
				there, present = true, append(present, entry)
			}
			name, at := place(pattern, stars, parts)
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
			return tree.unexplained(of, class, fmt.Sprintf("%q cannot be computed (%v)", pattern, of.err), "same", pattern, of.doubt)
		}
	}
	return tree.together(class, of, present)
}

// numbered are the entries of a class. One with a star after a word ("expert_*") stands for an entry
// of each number.
func (class *typeClass) numbered(of *evaluation) [][]any {
	const most = 10_000
	var all [][]any
	for _, entry := range class.Entries {
		pattern, _ := entry[1].(string)
		word, rest, several := strings.Cut(pattern, "_*")
		if !several {
			all = append(all, entry)
			continue
		}
		count, _ := number(of.eval(class.Rounds[word+"_*"], nil))
		if count > most {
			of.fail("there are too many")
		}
		for k := range int(min(count, most)) {
			one := slices.Clone(entry)
			one[1] = fmt.Sprint(word, "_", k, rest)
			all = append(all, one)
		}
	}
	return all
}

// computed notes file values of fields that the table computes from other fields. No build had such
// a value: some classes take it, others overwrite it. It is silent if both are equal or the table
// knows the class's choice. Defaults count too: a file with T5's default is_gated_act overwrites
// the value from feed_forward_proj.
func computed(tree *typeTree, class *typeClass, of *evaluation) error {
	const most = 3
	for _, path := range slices.Sorted(maps.Keys(class.Rules)) {
		v := of.object.saidOf(path)
		if v == nil || reads(class.Rules[path], path) || slices.Contains(class.Sets, path) {
			continue
		}
		made, ok := of.find(path)
		if of.err == nil && ok && deepEqual(v, made) {
			continue
		}
		ok = ok && of.err == nil
		if settled(tree, class, of, path, ok) {
			continue
		}
		if of.contested = append(of.contested, path); !ok || len(of.contested) > most {
			of.err, of.place = nil, path
			return overwritten(tree, of, class)
		}
	}
	return nil
}

// settled reports that the table knows the class's use of a file's value (made: it can compute
// one).
func settled(tree *typeTree, class *typeClass, of *evaluation, path string, made bool) bool {
	switch tree.in.whenSaid(class.Config, path) {
	case "over":
		return made
	case "kept":
		if slices.ContainsFunc(slices.Collect(maps.Keys(class.Pins)), func(pin string) bool { return of.dependsOn(path, pin) }) {
			return false
		}
		of.err, of.known[path] = nil, of.object.saidOf(path)
		return true
	}
	return false
}

// dependsOn reports a field that is computed from a field of the file.
func (of *evaluation) dependsOn(path, field string) bool {
	rule, ruled := of.rules[path]
	return ruled && reads(rule, field)
}

func overwritten(tree *typeTree, of *evaluation, class *typeClass) error {
	return tree.unexplained(of, class, fmt.Sprintf("%s computes this field from others", class.Config))
}

// either adds the tensors of a class if they are the same with the file's value of each contested
// field and with the computed one.
func either(tree *typeTree, class *typeClass, of *evaluation, module string, key []int, joins bool) error {
	var first *typeTree
	for chosen := range 1 << len(of.contested) {
		made := *tree
		made.tensors, made.ties, made.units = nil, make(map[string]string), make(map[string]string)
		as := &evaluation{object: of.object, rules: of.rules, setInside: of.setInside, known: maps.Clone(of.known)}
		for i, path := range of.contested {
			if chosen>>i&1 == 1 {
				as.known[path] = of.object.saidOf(path)
			}
		}
		if err := cmp.Or(tree.conditions(class, as), made.entries(class, as, module, key, joins)); err != nil {
			return err
		}
		if first == nil {
			first = &made
		} else if !reflect.DeepEqual([]any{first.tensors, first.ties, first.units}, []any{made.tensors, made.ties, made.units}) {
			of.place = of.contested[0]
			return overwritten(tree, of, class)
		}
	}
	tree.tensors, tree.noSplit, tree.visited = append(tree.tensors, first.tensors...), first.noSplit, first.visited
	maps.Copy(tree.ties, first.ties)
	maps.Copy(tree.units, first.units)
	return nil
}

// ordered gives each part of a name its place in the class. All numbers of a list have one place,
// so that they are in the list's order.
func ordered(places map[string]int, pattern string) (at []int) {
	for path := range prefixes(starred(pattern)) {
		if _, ok := places[path]; !ok {
			places[path] = len(places)
		}
		at = append(at, places[path])
	}
	return at
}

// place fills in the stars of a name. The key has the place of each part and the numbers. A mark
// after @ gives the same part of other layers another place ("mlp@cross").
func place(pattern string, stars, at []int) (name string, key []int) {
	parts := strings.Split(pattern, ".")
	key = make([]int, 0, 2*len(parts))
	for i, part := range parts {
		key = append(key, at[i])
		part, _, _ = strings.Cut(part, "@")
		parts[i] = part
		switch {
		case part == "*":
			key, parts[i], stars = append(key, stars[0]), strconv.Itoa(stars[0]), stars[1:]
		case part != "" && part[0] <= '9': // Atoi makes an error of each word
			if number, err := strconv.Atoi(part); err == nil {
				key = append(key, number)
			}
		}
	}
	return strings.Join(parts, "."), key
}

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
		if of.err == nil && (!ok || n < 0 || n == 0 && !isBuffer && of.zeroed(dim) && !of.standard(dim) || n > largest || n != math.Trunc(n)) {
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
	if class == "" {
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%s of Transformers %s makes no model of a %q; name another type", auto, tree.in.name, clipName(object.class.Type))}
	}
	object = of.sets(at, object)
	inner := tree.in.pinnedClass(class, object)
	if inner == nil {
		inner = tree.in.class(class, object.class.Config)
	}
	if inner == nil {
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%q has no %s in the table of Transformers %s", clipName(object.class.Type), clipName(class), tree.in.name)}
	}
	if !usual && inner.Config != object.class.Config { // its tensors are functions of other fields
		return &typeError{tree.file, object.prefix + "model_type", fmt.Sprintf("%q: the table of Transformers %s has only the %s of a %s here", clipName(object.class.Type), tree.in.name, class, inner.Config)}
	}
	tree.units[name] = class
	return tree.add(inner, object, name, key, joins)
}
