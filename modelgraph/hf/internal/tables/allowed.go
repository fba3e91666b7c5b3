package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// allowed refuses configs unlike every build that made the table.
func (tree *Tree) allowed(class *Class, of *evaluation) error {
	noHeads(tree, of.object)
	if class.IsReviewed() {
		ofKinds(tree, of.object, class.Class)
		class.lacks(tree, of.object)
	}
	if tree.depth == 1 {
		tree.checksSides = class.IsReviewed()
	} else if fault := class.sides(tree, of.object); tree.checksSides && fault != nil { // [Tree.Graph] asks for the outermost
		return fault
	}
	for _, path := range class.Unread {
		if !noTensors[path[strings.LastIndexByte(path, '.')+1:]] && path != "quantization_config" && of.object.unread(path) && !class.leaves(path) {
			of.place = path
			return tree.unexplained(of, class, "no build had this field", "unread", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(class.Pins)) {
		if !class.pinned(of.object, path) {
			of.place = path
			return tree.unexplained(of, class, "no rule explains another value than the default", "pins", path)
		}
	}
	if err := tree.activations(class, of); err != nil {
		return err
	}
	if path := class.newList(of.object); path != "" {
		of.place = path
		return tree.unexplained(of, class, "no build had a list")
	}
	if of.otherEnd(layerKinds) {
		of.place = layerKinds
		return tree.unexplained(of, class, "no build shows another last layer than the class makes")
	}
	return tree.conditions(class, of)
}

const maxPixels = 1 << 16 // of the side of an image

// sides refuses an image of a tower that holds no patch, as readers did.
func (class *Class) sides(tree *Tree, object *Object) *modelgraph.SyntaxError {
	var pixels []float64
	for _, name := range []string{"image_size", "patch_size"} {
		v, there := object.values[name]
		n, ok := v.(float64)
		if !there || kindOf(v) == "list" || !class.IsReviewed() {
			return nil
		}
		if !ok || n < 1 || n > maxPixels || n != math.Trunc(n) {
			return &modelgraph.SyntaxError{File: tree.file, Place: object.prefix + name, Msg: fmt.Sprintf("%s is not a side from 1 to %d pixels", InJSON(v), maxPixels)}
		}
		pixels = append(pixels, n)
	}
	if image, patch := pixels[0], pixels[1]; image < patch {
		return &modelgraph.SyntaxError{File: tree.file, Place: object.prefix + "image_size", Msg: fmt.Sprintf("%v × %v pixels hold no patch of %v × %v", image, image, patch, patch)}
	}
	return nil
}

// lacks notes a field that the class does not read and that adds modules in another model ([Adds]): the config may not be
// of its type. Readers of reviewed classes refused the same ([family.checkFields]).
func (class *Class) lacks(tree *Tree, object *Object) {
	for _, name := range slices.Sorted(maps.Keys(object.Extra)) {
		said := InJSON(object.Extra[name])
		if tree.Noted == nil && Adds(name) && !Harmless[name] && !noTensors[name] && !Empty([]byte(said)) {
			tree.Noted = &FieldError{File: tree.file, Field: object.prefix + name, Value: said, ModelType: object.class.Type, Class: class.Class}
		}
	}
}

// newList returns the first field with a list in the place of a number, if no build had one; or "".
func (class *Class) newList(object *Object) string {
	for _, path := range slices.Sorted(maps.Keys(object.said)) {
		if kindOf(object.said[path]) == "list" && kindOf(object.class.Fields[path]) == "number" && !AnyToken(path) && !class.takesList(path) && !class.leaves(path) {
			return path
		}
	}
	return ""
}

// takesList reports that the class asks whether a field is a list.
func (class *Class) takesList(path string) bool {
	all := slices.Collect(maps.Values(class.Rules))
	for _, rule := range class.Met {
		all = append(all, rule...)
	}
	return asksMany(all, "$"+path)
}

// asksMany reports an expression that asks whether a field is a list.
func asksMany(e any, field string) bool {
	list, ok := e.([]any)
	return ok && (DeepEqual(list, []any{"many", field}) || slices.ContainsFunc(list, func(x any) bool { return asksMany(x, field) }))
}

// noTensors are fields that Transformers' common code reads and that change no tensor
// (configuration_utils.py, modeling_utils.py). configuration_deepseek_v4.py reads expert_dtype for
// the quantization_config.
var noTensors = map[string]bool{"auto_map": true, "expert_dtype": true, "gradient_checkpointing": true, "mtp_layer_types": true, "use_pretrained_backbone": true}

// activations refuses unknown activations, and a change from or to an activation with tensors.
func (tree *Tree) activations(class *Class, of *evaluation) error {
	for _, path := range class.Acts {
		name, ok := of.find(path)
		text, isText := name.(string)
		if ok && isText && !Activation[text] {
			return &modelgraph.SyntaxError{File: tree.file, Place: of.object.prefix + path, Msg: fmt.Sprintf(NoActivation, spell.Clip(text), tree.in.Name)}
		}
		if standard := of.object.standard(path); ok && text != standard && (tree.in.parametric(text) || tree.in.parametric(standard) && !class.asks(path)) {
			of.place = path
			return tree.unexplained(of, class, "the activation holds tensors")
		}
	}
	return nil
}

// asks reports that a field decides which entries are there.
func (class *Class) asks(path string) bool {
	return slices.ContainsFunc(class.Entries, func(entry []any) bool { return reads(entry[2], path) })
}

// otherEnd reports a list of the file whose last text differs from the class's list without it. A
// class that takes the file's list unchanged is exempt.
func (of *evaluation) otherEnd(path string) bool {
	said, ok := of.object.said[path].([]any)
	rule, ruled := of.rules[path]
	if whole, _ := rule.([]any); !ok || !ruled || len(said) == 0 || len(whole) == 4 && DeepEqual(whole[1], []any{"null", "$" + path}) && whole[3] == "$"+path {
		return false
	}
	v, _ := of.object.byRule(path, rule)
	made, _ := v.([]any)
	return len(made) > 0 && !DeepEqual(made[len(made)-1], said[len(said)-1])
}

// conditions refuses texts and outcomes of conditions that no build had.
func (tree *Tree) conditions(class *Class, of *evaluation) error {
	file := &evaluation{object: of.object}
	at := map[any]*evaluation{true: file, false: of}
	for _, rule := range class.Texts {
		path, _ := rule[1].(string)
		v, ok := at[rule[0]].find(path)
		if ok && !allTexts(v, class.texts(rule[0], path)) && (rule[0] != true || !class.leaves(path)) {
			of.place = path
			return tree.unexplained(of, class, "no build had this value", "texts", rule)
		}
	}
	for _, rule := range class.Met {
		on := at[rule[0]]
		if on.met(rule[1:]) || of.asComputed(rule) || class.leavesAll(rule) {
			continue
		}
		place := on.place
		if entries, layers, uneven := on.uneven(rule); uneven && class.Rules["num_hidden_layers"] == nil {
			return &modelgraph.SyntaxError{File: tree.file, Place: of.object.prefix + on.place, Msg: fmt.Sprintf(UnevenText, entries, layers, tree.in.Name)}
		}
		if err := undivided(tree, class, on, rule); err != nil {
			return err
		}
		of.place = place
		return tree.unexplained(of, class, "no build was like it", "held", rule)
	}
	return nil
}

// uneven gives the sides of the condition that a list has an entry for each layer.
func (of *evaluation) uneven(rule []any) (entries, layers any, uneven bool) {
	condition, _ := rule[1].([]any)
	if len(condition) != 3 || condition[0] != "==" || condition[1] != "$num_hidden_layers" {
		return nil, nil, false
	}
	length, _ := condition[2].([]any)
	if len(length) != 2 || length[0] != "len" {
		return nil, nil, false
	}
	layers, entries = of.eval(condition[1], nil), of.eval(length, nil)
	uneven, of.err = of.err == nil && rule[2] == true, nil
	return entries, layers, uneven
}

// texts are all values that builds had of a field, in files or as the class made them. Only fields
// that change no tensors have such lists.
func (class *Class) texts(file any, path string) (all []any) {
	for _, rule := range class.Texts {
		if rule[0] == file && rule[1] == path {
			some, _ := rule[2].([]any)
			all = append(all, some...)
		}
	}
	known := func(name any) bool { return slices.Contains(all, name) }
	if len(slices.DeleteFunc(slices.Clone(plainActivations), func(name any) bool { return !known(name) })) > 1 {
		return append(all, plainActivations...)
	}
	return all
}

// plainActivations have no tensors. A field that had two of them in builds may have the others.
var plainActivations = []any{"gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "silu"}

// asComputed reports a field that no build set and that has the value that its class computes, as
// in configs that Transformers saved. Fields inside that no rule of the class reads are checked by
// the inner class.
func (of *evaluation) asComputed(rule []any) bool {
	condition, _ := rule[1].([]any)
	if rule[0] != true || rule[2] != true || len(condition) != 2 || condition[0] != "null" {
		return false
	}
	text, _ := condition[1].(string)
	path, isField := strings.CutPrefix(text, "$")
	if !isField {
		return false
	}
	if _, ruled := of.rules[path]; ruled {
		said, _ := of.object.get(path)
		made, ok := of.find(path)
		open := of.err != nil
		of.err = nil
		return ok && !open && DeepEqual(said, made)
	}
	if !strings.Contains(path, ".") {
		return false
	}
	return !reads(slices.Collect(maps.Values(of.rules)), path)
}

// met reports that a condition has the outcome that all builds had, in all rounds of its loop if it
// has one: [condition, outcome, rounds].
func (of *evaluation) met(rule []any) bool {
	rounds := 1.0
	if len(rule) > 2 {
		rounds, _ = number(of.eval(rule[2], nil))
	}
	for i := range int(min(rounds, maxRounds)) {
		v := of.eval(rule[0], []int{i})
		if of.err == nil && truth(v) != truth(rule[1]) {
			return false
		}
		of.err = nil
	}
	of.err = nil
	return true
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
