package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// folder reads a folder by the table of a release. If the files have exactly the tensors of the
// table's model of the config, or its operations are reviewed, that is the graph. Else it is read by
// the names that its classes can have.
func (in *release) folder(dir string, cfg *config, reason string) (*modelgraph.Graph, error) {
	ck, err := named(safetensors.ReadFolder(dir))
	if err != nil {
		return nil, err
	}
	tree, class, err := in.treeOf(cfg)
	if err == nil {
		graph, fault := in.graph(cfg, tree, class, folderName(dir), dir)
		if fault != nil {
			return nil, fault
		}
		graph.Folder = dir
		out, assigned, fault := assign(graph, cfg, ck)
		if tree.reviewed && fault != nil {
			return nil, fault
		}
		if tree.reviewed || fault == nil && assigned.exact() {
			out.Warnings = slices.DeleteFunc(out.Warnings, func(word string) bool { return strings.Contains(word, fromConfigAlone) })
			return out, nil
		}
	}
	if class == nil {
		return listedFolder(dir, cfg, reason)
	}
	l, err := in.listed(dir, cfg, class, ck)
	if err != nil {
		return nil, err
	}
	return l.graph(cfg, reason)
}

// listed is a class of the table as names that its tensors can have.
func (in *release) listed(dir string, cfg *config, class *typeClass, ck *safetensors.Checkpoint) (*listed, error) {
	kind := cfg.name("model_type")
	lines := findClass(class.Class, kind) // rules of stored names
	if lines == nil {
		lines = &listedClass{Class: class.Class, Type: kind, Prefix: classNames(class.Class, kind).Prefix, Tied: true}
	}
	lines.Params, lines.Buffers, lines.NoSplit, lines.Ties, lines.AlwaysTied = nil, make(map[string]bool), nil, nil, nil
	from := &objects{file: cfg.file, in: in}
	root := from.read("", class.Config, plainMembers(cfg), nil)
	if root == nil {
		return nil, from.err
	}
	names := &typeNames{in: in, class: lines, needs: make(map[string]bool), placed: make(map[*typeObject]bool)}
	names.add(class, root, "", true, true)
	for _, name := range slices.Sorted(maps.Keys(root.inner)) {
		if inner := root.inner[name]; inner != nil && !names.placed[inner] {
			names.tower(inner, ck)
		}
	}
	for i, pattern := range names.units { // no-split modules
		if of := names.unitClasses[i]; of == "" || slices.Contains(names.noSplit, of) {
			lines.NoSplit = append(lines.NoSplit, pattern)
		}
	}
	l := &listed{class: lines, ck: ck, dir: dir, in: in.name, tied: tiesWords(cfg, lines)}
	for _, pattern := range lines.Params {
		if names.needs[pattern] {
			l.needs = append(l.needs, pattern)
		}
	}
	return l, nil
}

// typeNames collects the patterns of a class and of the models inside it.
type typeNames struct {
	in          *release
	class       *listedClass
	needs       map[string]bool // patterns that every model has a tensor for
	units       []string
	unitClasses []string
	noSplit     []string
	placed      map[*typeObject]bool // objects whose model is there
	depth       int
}

// tower adds the model of an object without a place in the table, if the files have it. Its place
// is the module whose names are all the model's.
func (names *typeNames) tower(object *typeObject, ck *safetensors.Checkpoint) {
	inner := line[typeClass](names.in, "class", names.in.auto(object.class.Type, "AutoModel"))
	if inner == nil {
		return
	}
	own := &typeNames{in: names.in, class: &listedClass{Buffers: make(map[string]bool)}, needs: make(map[string]bool), placed: names.placed}
	own.add(inner, object, "", true, false)
	pats := newPatterns(slices.AppendSeq(slices.Clone(own.class.Params), maps.Keys(own.class.Buffers)))
	matched, below := make(map[string]int), make(map[string]int)
	for i := range ck.Tensors {
		name := ck.Tensors[i].Name
		for module := parent(name); module != ""; module = parent(module) {
			below[module]++
			if pats.match(name[len(module)+1:]) != "" {
				matched[module]++
			}
		}
	}
	best := ""
	for _, module := range slices.Sorted(maps.Keys(matched)) {
		if matched[module] == below[module] && matched[module] > matched[best] {
			best = module
		}
	}
	if 2*matched[best] > len(own.class.Params) {
		names.noSplit = append(names.noSplit, inner.NoSplit...)
		names.add(inner, object, best, true, false)
	}
}

// add adds the patterns of a class below a module, as [typeTree.add] adds its tensors. needed:
// every model has the module.
func (names *typeNames) add(class *typeClass, object *typeObject, module string, joins, needed bool) {
	const deepest = 16
	names.depth++
	defer func() { names.depth-- }()
	if names.depth > deepest || object == nil {
		return
	}
	names.placed[object] = true
	if joins {
		names.noSplit = append(names.noSplit, class.NoSplit...)
	}
	of := &evaluation{object: object, rules: class.Rules, known: make(map[string]any)}
	for _, entry := range class.numbered(of) {
		own, _ := entry[1].(string)
		own = unmarked(own)
		pattern := modelgraph.FullName(module, own)
		there := truth(of.eval(entry[2], nil)) && of.err == nil && needed
		unknown := of.err != nil
		of.err = nil
		switch entry[0] {
		case "t":
			names.tie(entry, of, pattern, module, there, unknown)
		case "i":
			names.include(entry[3:], object, pattern, joins && !strings.Contains(own, "."), there)
		default:
			names.entry(entry, pattern, joins, there)
		}
	}
}

// entry notes a parameter, a buffer or a module that may not be split.
func (names *typeNames) entry(entry []any, pattern string, joins, there bool) {
	switch entry[0] {
	case "p":
		names.class.Params = append(names.class.Params, pattern)
		names.needs[pattern] = there && !strings.Contains(pattern, "*")
	case "b":
		names.class.Buffers[pattern] = truth(entry[5])
	case "n":
		named := ""
		if len(entry) > 3 {
			named, _ = entry[3].(string)
		}
		if named != "" || joins {
			names.units, names.unitClasses = append(names.units, pattern), append(names.unitClasses, named)
		}
	}
}

// tie notes a parameter that is another one.
func (names *typeNames) tie(entry []any, of *evaluation, pattern, module string, there, unknown bool) {
	names.class.Params = append(names.class.Params, pattern)
	owner, _ := of.eval(entry[3], nil).(string)
	of.err = nil
	if owner = modelgraph.FullName(module, owner); owner == module {
		return
	}
	switch group := []string{owner, pattern}; {
	case there:
		names.class.AlwaysTied = append(names.class.AlwaysTied, group)
	case unknown:
		names.class.Ties = append(names.class.Ties, group)
	}
}

// include adds the patterns of a model inside another.
func (names *typeNames) include(rest []any, object *typeObject, pattern string, joins, needed bool) {
	at, _ := rest[0].(string)
	auto, _ := rest[1].(string)
	name, _ := rest[2].(string)
	for part := range strings.SplitSeq(strings.TrimSuffix(at, "."), ".") {
		if part != "" && object != nil {
			object = object.inner[part]
		}
	}
	if object == nil {
		return
	}
	if auto != "" {
		name = names.in.auto(object.class.Type, auto)
	}
	names.units, names.unitClasses = append(names.units, pattern), append(names.unitClasses, name)
	if inner := line[typeClass](names.in, "class", name); inner != nil {
		names.add(inner, object, pattern, joins, needed)
	}
}

// storedBytes are the bytes of all tensors in the files.
func (l *listed) storedBytes() (total int64) {
	for i := range l.ck.Tensors {
		total += l.ck.Tensors[i].Bytes()
	}
	return total
}
