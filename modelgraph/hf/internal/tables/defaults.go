package tables

import (
	"slices"
	"strings"
)

// made is the class's value for a null field, with defaults for all others.
func (obj *Object) made(path string) (any, bool) {
	obj, path = obj.at(path)
	v, ok := obj.class.Made[path]
	return v, ok && obj.unchanged()
}

// byRule is the value that a rule gives a field which the file leaves out.
func (obj *Object) byRule(path string, rule any) (v any, known bool) {
	alone := &evaluation{object: obj.with(path, nil)}
	if v = alone.eval(rule, nil); alone.err != nil {
		return nil, false
	}
	return v, true
}

// unchanged reports fields that all are as by default, or as the class makes them.
func (obj *Object) unchanged() bool {
	for name, v := range obj.said {
		usual, field := obj.class.Fields[name]
		if made := obj.class.Made[name]; field && !AnyToken(name) && !DeepEqual(v, usual) && (usual != nil || !DeepEqual(v, made)) {
			return false
		}
	}
	for _, inner := range obj.inner {
		if !inner.unchanged() {
			return false
		}
	}
	return true
}

// standard is the default of a field that names something.
func (obj *Object) standard(path string) string {
	text, _ := obj.byDefault(path).(string)
	return text
}

// differs is the file's value of a field if it is not the default.
func (obj *Object) differs(path string) (v any, differs bool) {
	obj, path = obj.at(path)
	v, ok := obj.said[path]
	return v, ok && !DeepEqual(v, obj.class.Fields[path])
}

func (obj *Object) byDefault(path string) any {
	obj, path = obj.at(path)
	return obj.class.Fields[path]
}

// likeDefault reports a value of the kind that its default has: a number, a text, a list or an
// object. A list or a number may be given if the default is null.
func (obj *Object) likeDefault(path string, v any) bool {
	if obj, path = obj.at(path); obj == nowhere {
		return true
	}
	like, has := kindOf(obj.class.Fields[path]), kindOf(v)
	return has == "" || has == like || like == "" && (has == "list" || has == "number")
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return ""
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "number"
}

// standard reports that all fields that an expression reads have the values of the default config,
// which every class was built with.
func (of *evaluation) standard(e any) bool {
	switch e := e.(type) {
	case string:
		path, isField := strings.CutPrefix(e, "$")
		if _, ruled := of.rules[path]; ruled && isField {
			return false
		}
		_, differs := of.object.differs(path)
		return !isField || !differs
	case []any:
		return !slices.ContainsFunc(e, func(x any) bool { return !of.standard(x) })
	}
	return true
}

// zeroed reports an expression that reads a field which the file sets to 0 and which is null or
// computed otherwise. A class may treat 0 as none.
func (of *evaluation) zeroed(e any) bool {
	switch e := e.(type) {
	case string:
		path, isField := strings.CutPrefix(e, "$")
		rule, ruled := of.rules[path]
		n, isNumber := number(of.object.saidOf(path))
		if isField && isNumber && n == 0 && (ruled || of.object.byDefault(path) == nil) {
			return true
		}
		return isField && ruled && (&evaluation{object: of.object}).zeroed(rule)
	case []any:
		return slices.ContainsFunc(e, of.zeroed)
	}
	return false
}

// openIndex reports a fixed index into a list whose elements are equal by default, but not in the
// file. The real index may be another, or a loop's.
func (of *evaluation) openIndex(xs []any) bool {
	text, _ := xs[0].(string)
	if _, fixed := xs[1].(float64); !fixed {
		return false
	}
	path, _ := strings.CutPrefix(text, "$")
	usual, _ := of.object.class.Fields[path].([]any)
	said, _ := of.object.said[path].([]any)
	several := func(xs []any) bool { return len(slices.CompactFunc(slices.Clone(xs), equal)) > 1 }
	return len(usual) > 1 && !several(usual) && several(said)
}
