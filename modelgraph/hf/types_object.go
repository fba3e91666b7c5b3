package hf

import (
	"maps"
	"slices"
	"strings"
)

// typeObject is a config or an object inside one, with the defaults of its
// class.
type typeObject struct {
	class  *typeConfig
	values map[string]any
	inner  map[string]*typeObject
	extra  map[string]any // fields that its class does not have
	said   map[string]any // what the file says, by the names of the class
	prefix string
}

// get is a value of the file or its default. A path has dots between objects,
// slashes before keys.
func (obj *typeObject) get(path string) (any, bool) {
	if first, rest, ok := strings.Cut(path, "."); ok && !strings.Contains(first, "/") {
		if inner := obj.inner[first]; inner != nil {
			return inner.get(rest)
		}
		return nil, false
	}
	name, keys, deep := strings.Cut(path, "/")
	v, ok := obj.values[name]
	for deep && ok {
		var key string
		key, keys, deep = strings.Cut(keys, "/")
		m, isMap := v.(map[string]any)
		if !isMap {
			return nil, false
		}
		v, ok = m[key]
	}
	return v, ok
}

// standard is the default of a field that names something.
func (obj *typeObject) standard(path string) string {
	if first, rest, ok := strings.Cut(path, "."); ok {
		if inner := obj.inner[first]; inner != nil {
			return inner.standard(rest)
		}
	}
	text, _ := obj.class.Fields[path].(string)
	return text
}

// likeDefault reports a value of the kind that its default has: a number, a text, a
// list or an object. A list or a number may be given where the default is null.
func (obj *typeObject) likeDefault(path string, v any) bool {
	if first, rest, ok := strings.Cut(path, "."); ok {
		inner := obj.inner[first]
		return inner == nil || inner.likeDefault(rest, v)
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

// differs gives what the file says of a field if it is not the default.
func (obj *typeObject) differs(path string) (v any, differs bool) {
	if first, rest, ok := strings.Cut(path, "."); ok {
		if inner := obj.inner[first]; inner != nil {
			return inner.differs(rest)
		}
		return nil, false
	}
	v, ok := obj.said[path]
	return v, ok && !deepEqual(v, obj.class.Fields[path])
}

// unread reports a field that the class does not have, and that the file says.
func (obj *typeObject) unread(path string) bool {
	if first, rest, ok := strings.Cut(path, "."); ok {
		inner := obj.inner[first]
		return inner != nil && inner.unread(rest)
	}
	return obj.extra[path] != nil
}

// number is a number; true is 1, as in Python.
func number(x any) (float64, bool) {
	switch x := x.(type) {
	case float64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func equal(x, y any) bool {
	a, isNumber := number(x)
	if b, also := number(y); isNumber && also {
		return a == b
	}
	switch x := x.(type) {
	case string:
		text, ok := y.(string)
		return ok && x == text
	case nil:
		return y == nil
	}
	return false
}

// deepEqual compares lists and objects too.
func deepEqual(x, y any) bool {
	switch x := x.(type) {
	case []any:
		list, ok := y.([]any)
		return ok && slices.EqualFunc(x, list, deepEqual)
	case map[string]any:
		object, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, object, deepEqual)
	}
	return equal(x, y)
}
