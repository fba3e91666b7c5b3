package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// typeNames collects the patterns of a class and of the models inside it.
type typeNames struct {
	in          *release
	params      []string
	buffers     map[string]bool // and whether state dicts include them
	needs       map[string]bool // patterns that every model has a tensor for
	tied        [][]string      // groups that are tied in every model
	mayTie      [][]string      // groups that are tied in some
	units       []string
	unitClasses []string
	noSplit     []string
	placed      map[*typeObject]bool // objects whose model is there
	depth       int
}

// names are the patterns of a config of a class, with the models whose place only the files show.
func (in *release) names(file string, class *typeClass, members map[string]any, ck *safetensors.Checkpoint) (*typeNames, error) {
	root, err := in.root(file, class.Config, members)
	if root == nil {
		return nil, err
	}
	names := &typeNames{in: in, buffers: make(map[string]bool), needs: make(map[string]bool), placed: make(map[*typeObject]bool)}
	names.add(class, root, "", true, true)
	for _, name := range slices.Sorted(maps.Keys(root.inner)) {
		if inner := root.inner[name]; inner != nil && !names.placed[inner] {
			names.tower(inner, ck)
		}
	}
	return names, nil
}

// whole are the patterns of the modules that are not split.
func (names *typeNames) whole() (patterns []string) {
	for i, pattern := range names.units {
		if of := names.unitClasses[i]; of == "" || slices.Contains(names.noSplit, of) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// tower adds the model of an object without a place in the table, if the files have it. Its place
// is the module whose names are all the model's.
func (names *typeNames) tower(object *typeObject, ck *safetensors.Checkpoint) {
	inner := line[typeClass](names.in, "class", names.in.auto(object.class.Type, "AutoModel"))
	if inner == nil {
		return
	}
	own := &typeNames{in: names.in, buffers: make(map[string]bool), needs: make(map[string]bool), placed: names.placed}
	own.add(inner, object, "", true, false)
	pats := newPatterns(slices.AppendSeq(slices.Clone(own.params), maps.Keys(own.buffers)))
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
	if 2*matched[best] > len(own.params) {
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
		names.params = append(names.params, pattern)
		names.needs[pattern] = there && !strings.Contains(pattern, "*")
	case "b":
		names.buffers[pattern] = truth(entry[5])
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
	names.params = append(names.params, pattern)
	owner, _ := of.eval(entry[3], nil).(string)
	of.err = nil
	if owner = modelgraph.FullName(module, owner); owner == module {
		return
	}
	switch group := []string{owner, pattern}; {
	case there:
		names.tied = append(names.tied, group)
	case unknown:
		names.mayTie = append(names.mayTie, group)
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
