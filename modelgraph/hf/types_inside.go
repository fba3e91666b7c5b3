package hf

import (
	"maps"
	"slices"
	"strings"
)

// pinned reports that a field has a line's known value, or the class's value for null. A backbone's
// stages have names and numbers: either field is enough.
func (class *typeClass) pinned(object *typeObject, path string) bool {
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
		alone := &evaluation{object: object.with(path, nil)}
		made = alone.eval(rule, nil)
		known = alone.err == nil
	}
	return want == nil && known && deepEqual(v, made)
}

// leaves reports a field of an inner config that only the inner class reads and checks.
func (class *typeClass) leaves(path string) bool {
	if path[strings.LastIndexByte(path, '.')+1:] == "tie_word_embeddings" {
		return false
	}
	inside := false
	for _, entry := range class.Entries {
		if readsAny(entry[2:], path) {
			return false
		}
		if entry[0] == "i" && len(entry) > 3 {
			at, _ := entry[3].(string)
			inside = inside || strings.HasPrefix(path, at) && (at != "" || !strings.Contains(path, "."))
		}
	}
	return inside && !readsAny(slices.Collect(maps.Values(class.Rules)), path) && !readsAny(slices.Collect(maps.Values(class.Rounds)), path)
}

// leavesAll reports a condition of the file that reads such fields alone.
func (class *typeClass) leavesAll(rule []any) bool {
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

func readsAny(all []any, path string) bool {
	return slices.ContainsFunc(all, func(x any) bool { return reads(x, path) })
}
