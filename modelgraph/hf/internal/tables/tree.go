package tables

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// Tree collects the tensors of a model.
type Tree struct {
	file        string
	in          *Release
	Tensors     []Tensor
	Ties        map[string]string // name to its owner's
	Units       map[string]string // modules that one device may need whole, and their classes
	wide        []string          // expressions for parameters that stay in float32
	NoSplit     []string          // their classes that it needs; a unit without a class counts too
	Outermost   bool              // no unsplit class: members of the outermost lists stay whole
	holders     map[string]bool   // modules around these, and those lists
	lists       *paths.Tree       // of its names
	Root        *Object           // the config
	Reviewed    bool              // its operations were compared with measured steps
	Runs        bool              // and have everything for running
	linear      []string          // modules that are linear layers, if that is known of all
	depth       int
	checksSides bool  // images of towers hold a patch
	visited     int   // names that were evaluated
	Noted       error // the first field of the file that no model runs with, or that another model has
	// Cause is the part of a class's line that refuses the config: [class, kind, …].
	// fixtures/oracle/loosening.py collects builds that decide it.
	Cause []any
}

// Tensor is a parameter or a buffer. Its key sorts it in module order.
type Tensor struct {
	Name       string
	Key        []int
	Shape      []int64
	dtype      string
	Buffer     bool
	Persistent bool
}

func (tree *Tree) unexplained(of *evaluation, class *Class, why string, cause ...any) error {
	field := of.object.prefix + of.place
	said := ""
	tree.Cause = append([]any{class.Class}, cause...)
	if v, ok := of.object.get(of.place); ok && of.object.inner[of.place] == nil {
		said = InJSON(v) + ": "
	}
	return &Error{tree.file, field, fmt.Sprintf("%sthe table of Transformers %s does not say what a %s is then: %s", said, tree.in.Name, class.Class, why)}
}

// numbers are the numbers that a name with stars has.
func (tree *Tree) numbers(class *Class, of *evaluation, pattern string) [][]int {
	all := [][]int{nil}
	var part int
	for at := 0; at <= len(pattern); at = part + 1 {
		part = at + strings.IndexByte(pattern[at:]+".", '.')
		if pattern[at:part] != "*" {
			continue
		}
		var next [][]int
		for _, outer := range all {
			v := of.eval(class.Rounds[pattern[:part]], outer)
			count, ok := number(v)
			if !ok && v != nil || count != math.Trunc(count) {
				of.fail("%s is no number of modules", InJSON(v))
			}
			if field, isField := class.Rounds[pattern[:part]].(string); isField {
				tooSmall(tree, of.object, strings.TrimPrefix(field, "$"), 0)
			}
			if of.err != nil {
				return nil
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

// maxTensors bounds a model, and the names that a table evaluates for it.
const maxTensors = 1_000_000

// Linears are the linear layers of a tree with operations, else those in its class's lists. Nil if a matrix
// is in neither list.
func Linears(tree *Tree, class *Class) []string {
	if tree.linear != nil {
		return tree.linear
	}
	for _, t := range tree.Tensors {
		if module := paths.Starred(paths.Parent(t.Name)); len(t.Shape) == 2 && paths.Last(t.Name) == "weight" && !slices.Contains(class.Linear, module) && !slices.Contains(class.Tables, module) {
			return nil
		}
	}
	return class.Linear
}

// add adds the tensors of a class below a module. key is the module's place. With joins, the model
// around it takes over its classes that are not split, as modeling_utils.py, post_init, does for
// direct children.
func (tree *Tree) add(class *Class, object *Object, module string, key []int, joins bool) error {
	const deepest = 12
	tree.depth++
	if tree.depth > deepest {
		return &Error{tree.file, object.prefix + "model_type", "the models inside are nested too deeply"}
	}
	defer func() { tree.depth-- }()
	of := &evaluation{object: object, rules: class.Rules, setInside: class.Sets, known: make(map[string]any)}
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
func (tree *Tree) entries(class *Class, of *evaluation, module string, key []int, joins bool) error {
	if joins {
		tree.NoSplit = append(tree.NoSplit, class.NoSplit...)
	}
	places := make(map[string]int) // of the parts of names
	var present [][]any
	for _, entry := range class.numbered(of) {
		kind, _ := entry[0].(string)
		pattern, _ := entry[1].(string)
		if class.Class == "OPTDecoder" && paths.Parent(pattern) == "final_layer_norm" && truth(of.object.said["_remove_final_layer_norm"]) {
			continue // builds have no private fields
		}
		parts := ordered(places, pattern)
		all := tree.numbers(class, of, pattern)
		if tree.visited += len(all); tree.visited > maxTensors {
			return &Error{tree.file, of.object.prefix + of.place, fmt.Sprintf("the model has more than %d tensors", maxTensors)}
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

func (tree *Tree) entry(kind string, rest []any, of *evaluation, stars []int, module, name string, key []int, joins bool) error {
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
			tree.Units[name] = class
		}
	case "t":
		owner, _ := of.eval(rest[0], stars).(string)
		tree.Ties[name] = modelgraph.FullName(module, owner)
	}
	return nil
}

func (tree *Tree) tensor(isBuffer bool, rest []any, of *evaluation, stars []int, name string, key []int) error {
	dims, _ := rest[0].([]any)
	dtype, _ := rest[1].(string)
	t := Tensor{Name: name, Key: key, dtype: dtype, Buffer: isBuffer, Shape: make([]int64, len(dims))}
	if isBuffer {
		t.Persistent = truth(rest[2])
	}
	const largest = 1 << 50
	for i, dim := range dims {
		n, ok := number(of.eval(dim, stars))
		bad := !ok || n < 0 || n > largest || n != math.Trunc(n)
		if ok && n <= 0 && !isBuffer && !of.standard(dim) {
			emptied(tree, of, dim)
			bad = bad || of.zeroed(dim)
		}
		if bad && of.err == nil {
			of.fail("size %v of %q", n, name)
		}
		t.Shape[i] = int64(n)
	}
	tree.Tensors = append(tree.Tensors, t)
	return nil
}

// include adds a model inside another.
func (tree *Tree) include(rest []any, of *evaluation, name string, key []int, joins bool) error {
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
		return &Error{tree.file, object.prefix + "model_type", fmt.Sprintf("%s of Transformers %s makes no model of a %q; name another type", auto, tree.in.Name, spell.Clip(object.class.Type))}
	}
	object = of.sets(at, object)
	inner := tree.in.pinnedClass(class, object)
	if inner == nil {
		inner = tree.in.Class(class, object.class.Config)
	}
	if inner == nil {
		return &Error{tree.file, object.prefix + "model_type", fmt.Sprintf("%q has no %s in the table of Transformers %s", spell.Clip(object.class.Type), spell.Clip(class), tree.in.Name)}
	}
	if !usual && inner.Config != object.class.Config { // its tensors are functions of other fields
		return &Error{tree.file, object.prefix + "model_type", fmt.Sprintf("%q: the table of Transformers %s has only the %s of a %s here", spell.Clip(object.class.Type), tree.in.Name, class, inner.Config)}
	}
	tree.Units[name] = class
	return tree.add(inner, object, name, key, joins)
}
