package tables

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// pinned reports that a field has a line's known value, or the class's value for null. A backbone's
// stages have names and numbers: either field is enough.
func (class *Class) pinned(object *Object, path string) bool {
	want, dot := class.Pins[path], strings.LastIndexByte(path, '.')+1
	if object.pinned(path, want) || noTensors[path[dot:]] {
		return true
	}
	twin := map[string]string{"out_features": "out_indices", "out_indices": "out_features"}[path[dot:]]
	if stages := class.Pins[path[:dot]+twin]; want == nil && twin != "" && stages != nil {
		return object.pinned(path[:dot]+twin, stages)
	}
	v, _ := object.get(path)
	made, known := object.made(path)
	if rule, ruled := class.Rules[path]; ruled {
		made, known = object.byRule(path, rule)
	}
	return want == nil && known && DeepEqual(v, made)
}

// leaves reports a field of an inner config that only the inner class reads and checks.
func (class *Class) leaves(path string) bool {
	if path[strings.LastIndexByte(path, '.')+1:] == "tie_word_embeddings" {
		return false
	}
	inside := false
	for _, entry := range class.Entries {
		if reads(entry[2:], path) {
			return false
		}
		if entry[0] == "i" && len(entry) > 3 {
			at, _ := entry[3].(string)
			inside = inside || strings.HasPrefix(path, at) && (at != "" || !strings.Contains(path, "."))
		}
	}
	return inside && !reads(slices.Collect(maps.Values(class.Rules)), path) && !reads(slices.Collect(maps.Values(class.Rounds)), path)
}

// leavesAll reports a condition of the file that reads such fields alone.
func (class *Class) leavesAll(rule []any) bool {
	fields := fieldsIn(rule[1], nil)
	return rule[0] == true && len(fields) > 0 && !slices.ContainsFunc(fields, func(path string) bool { return !class.leaves(path) })
}

// fieldsIn are the fields that an expression reads.
func fieldsIn(e any, into []string) []string {
	switch e := e.(type) {
	case string:
		if path, ok := strings.CutPrefix(e, "$"); ok {
			return append(into, path)
		}
	case []any:
		for _, x := range e {
			into = fieldsIn(x, into)
		}
	}
	return into
}

// computed notes file values of fields that the table computes from other fields. No build had such
// a value: some classes take it, others overwrite it. It is silent if both are equal or the table
// knows the class's choice. Defaults count too: a file with T5's default is_gated_act overwrites
// the value from feed_forward_proj.
func computed(tree *Tree, class *Class, of *evaluation) error {
	const most = 3
	for _, path := range slices.Sorted(maps.Keys(class.Rules)) {
		v := of.object.saidOf(path)
		if v == nil || reads(class.Rules[path], path) || slices.Contains(class.Sets, path) {
			continue
		}
		made, ok := of.find(path)
		if of.err == nil && ok && DeepEqual(v, made) {
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
func settled(tree *Tree, class *Class, of *evaluation, path string, made bool) bool {
	switch tree.in.whenSaid(class.Config, path) {
	case "over":
		return made
	case "kept":
		if slices.ContainsFunc(slices.Collect(maps.Keys(class.Pins)), func(pin string) bool { return reads(of.rules[path], pin) }) {
			return false
		}
		of.err, of.known[path] = nil, of.object.saidOf(path)
		return true
	}
	return false
}

func overwritten(tree *Tree, of *evaluation, class *Class) error {
	return tree.unexplained(of, class, fmt.Sprintf("%s computes this field from others", class.Config))
}

// either adds the tensors of a class if they are the same with the file's value of each contested
// field and with the computed one.
func either(tree *Tree, class *Class, of *evaluation, module string, key []int, joins bool) error {
	var first *Tree
	for chosen := range 1 << len(of.contested) {
		made := *tree
		made.Tensors, made.Ties, made.Units = nil, make(map[string]string), make(map[string]string)
		as := &evaluation{object: of.object, rules: of.rules, setInside: of.setInside, known: maps.Clone(of.known)}
		for i, path := range of.contested {
			if chosen>>i&1 == 1 {
				as.known[path] = of.object.saidOf(path)
			}
		}
		if err := cmp.Or(tree.conditions(class, as), made.entries(class, as, module, key, joins)); err != nil {
			return err
		}
		if tree.Noted = cmp.Or(tree.Noted, made.Noted); first == nil {
			first = &made
		} else if !reflect.DeepEqual([]any{first.Tensors, first.Ties, first.Units}, []any{made.Tensors, made.Ties, made.Units}) {
			of.place = of.contested[0]
			return overwritten(tree, of, class)
		}
	}
	tree.Tensors, tree.NoSplit, tree.visited = append(tree.Tensors, first.Tensors...), first.NoSplit, first.visited
	maps.Copy(tree.Ties, first.Ties)
	maps.Copy(tree.Units, first.Units)
	return nil
}

// pinnedClass reads the line of an object's model class. If a class has several lines for values of
// its config, the line with the most pins of the object counts.
func (in *Release) pinnedClass(name string, object *Object) (found *Class) {
	met := false
	for _, as := range []func(*Class, string) bool{
		func(read *Class, path string) bool { return object.pinned(path, read.Pins[path]) },
		func(read *Class, path string) bool { return read.pinned(object, path) }, // as saved
	} {
		for read := range lines[Class](in, fmt.Sprintf(`{"class":%q,`, name)) {
			if read.Config != object.class.Config {
				continue
			}
			all := true
			for path := range read.Pins {
				all = all && as(read, path)
			}
			if found == nil || all && (!met || len(read.Pins) > len(found.Pins)) {
				found, met = read, all
			}
		}
		if met {
			break
		}
	}
	return found
}
