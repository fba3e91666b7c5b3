package tables

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Names collects the patterns of a class and of the models inside it.
type Names struct {
	in          *Release
	Params      []string
	Buffers     map[string]bool // and whether state dicts include them
	Needs       map[string]bool // patterns that every model has a tensor for
	Tied        [][]string      // groups that are tied in every model
	MayTie      [][]string      // groups that are tied in some
	units       []string
	unitClasses []string
	noSplit     []string
	placed      map[*Object]bool // objects whose model is there
	depth       int
}

// Names are the patterns of a config of a class, with the models whose place only the files show.
func (in *Release) Names(file string, class *Class, members map[string]any, ck *safetensors.Checkpoint) (*Names, error) {
	root, err := in.root(file, class.Config, members)
	if root == nil {
		return nil, err
	}
	names := &Names{in: in, Buffers: make(map[string]bool), Needs: make(map[string]bool), placed: make(map[*Object]bool)}
	names.add(class, root, "", true, true)
	for _, name := range slices.Sorted(maps.Keys(root.inner)) {
		if inner := root.inner[name]; inner != nil && !names.placed[inner] {
			names.tower(inner, ck)
		}
	}
	return names, nil
}

// Whole are the patterns of the modules that are not split.
func (names *Names) Whole() (patterns []string) {
	for i, pattern := range names.units {
		if of := names.unitClasses[i]; of == "" || slices.Contains(names.noSplit, of) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// tower adds the model of an object without a place in the table, if the files have it. Its place
// is the module whose names are all the model's.
func (names *Names) tower(object *Object, ck *safetensors.Checkpoint) {
	inner := line[Class](names.in, "class", names.in.auto(object.class.Type, "AutoModel"))
	if inner == nil {
		return
	}
	own := &Names{in: names.in, Buffers: make(map[string]bool), Needs: make(map[string]bool), placed: names.placed}
	own.add(inner, object, "", true, false)
	pats := paths.NewPatterns(slices.AppendSeq(slices.Clone(own.Params), maps.Keys(own.Buffers)))
	matched, below := make(map[string]int), make(map[string]int)
	for i := range ck.Tensors {
		name := ck.Tensors[i].Name
		for module := paths.Parent(name); module != ""; module = paths.Parent(module) {
			below[module]++
			if pats.Match(name[len(module)+1:]) != "" {
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
	if 2*matched[best] > len(own.Params) {
		names.noSplit = append(names.noSplit, inner.NoSplit...)
		names.add(inner, object, best, true, false)
	}
}

// add adds the patterns of a class below a module, as [Tree.add] adds its tensors. needed:
// every model has the module.
func (names *Names) add(class *Class, object *Object, module string, joins, needed bool) {
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
func (names *Names) entry(entry []any, pattern string, joins, there bool) {
	switch entry[0] {
	case "p":
		names.Params = append(names.Params, pattern)
		names.Needs[pattern] = there && !strings.Contains(pattern, "*")
	case "b":
		names.Buffers[pattern] = truth(entry[5])
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
func (names *Names) tie(entry []any, of *evaluation, pattern, module string, there, unknown bool) {
	names.Params = append(names.Params, pattern)
	owner, _ := of.eval(entry[3], nil).(string)
	of.err = nil
	if owner = modelgraph.FullName(module, owner); owner == module {
		return
	}
	switch group := []string{owner, pattern}; {
	case there:
		names.Tied = append(names.Tied, group)
	case unknown:
		names.MayTie = append(names.MayTie, group)
	}
}

// include adds the patterns of a model inside another.
func (names *Names) include(rest []any, object *Object, pattern string, joins, needed bool) {
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
	if inner := line[Class](names.in, "class", name); inner != nil {
		names.add(inner, object, pattern, joins, needed)
	}
}
