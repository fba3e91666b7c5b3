package tables

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Object is a config or an object inside one, with the defaults of its class.
type Object struct {
	class  *ConfigClass
	values map[string]any
	inner  map[string]*Object
	Extra  map[string]any // fields that its class does not have
	said   map[string]any // the file's fields, by the names of the class
	prefix string
	// aliased are fields that the file sets by an alias, with their values before: a class may
	// compute others from those.
	aliased []aliasedField
}

type aliasedField struct {
	name   string
	before any
}

// early is the object before the file's aliases are set.
func (obj *Object) early() *Object {
	for _, field := range obj.aliased {
		obj = obj.with(field.name, field.before)
	}
	return obj
}

// nowhere has no fields.
var nowhere = &Object{class: new(ConfigClass)}

// at is the object that has a field of a path, [nowhere] if there is none, and the field's name.
func (obj *Object) at(path string) (*Object, string) {
	for obj != nil {
		first, rest, inside := strings.Cut(path, ".")
		if !inside || strings.Contains(first, "/") {
			break
		}
		obj, path = obj.inner[first], rest
	}
	return cmp.Or(obj, nowhere), path
}

// get is a value of the file or its default. A path has dots between objects, slashes before keys.
func (obj *Object) get(path string) (any, bool) {
	obj, path = obj.at(path)
	name, keys, deep := strings.Cut(path, "/")
	v, ok := obj.values[name]
	if to := obj.class.Alias[name]; !ok && to != "" {
		v, ok = obj.values[to]
	}
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

// with is the object with another value of a field of it or of an object inside.
func (obj *Object) with(path string, v any) *Object {
	changed := *obj
	if first, rest, ok := strings.Cut(path, "."); ok && obj.inner[first] != nil {
		changed.inner = maps.Clone(obj.inner)
		changed.inner[first] = obj.inner[first].with(rest, v)
		return &changed
	}
	changed.values = maps.Clone(obj.values)
	changed.values[path] = v
	return &changed
}

// pinned reports that a field of the file has a value.
func (obj *Object) pinned(path string, want any) bool {
	obj, path = obj.at(path)
	if path == "model_type" {
		return want == obj.class.Type
	}
	v, ok := obj.values[path]
	if !ok {
		v, ok = obj.Extra[path]
	}
	return ok && DeepEqual(v, want)
}

// saidOf is the file's value of a field.
func (obj *Object) saidOf(path string) any {
	obj, path = obj.at(path)
	return obj.said[path]
}

// unread reports a field of the file that the class does not have.
func (obj *Object) unread(path string) bool {
	obj, path = obj.at(path)
	return obj.Extra[path] != nil
}

// rotary is the file's value of a key of rope_parameters, which precedes a computed one.
func (obj *Object) rotary(path string) (any, bool) {
	if obj, path = obj.at(path); !strings.HasPrefix(path, "rope_parameters/") || obj.said["rope_parameters"] == nil && obj.said["rope_scaling"] == nil && obj.said["partial_rotary_factor"] == nil {
		return nil, false
	}
	v, ok := obj.get(path)
	return v, ok && v != nil
}

// Misspelt are notes on fields that the class lacks, as [family.misspelt] gives.
func (obj *Object) Misspelt() (notes []string) {
	absent := slices.DeleteFunc(slices.Concat(slices.Collect(maps.Keys(obj.class.Fields)), slices.Collect(maps.Keys(obj.class.Alias)), slices.Collect(maps.Keys(obj.class.Inner))), func(name string) bool { return obj.said[name] != nil })
	for _, name := range slices.Sorted(maps.Keys(obj.Extra)) {
		if !Harmless[name] && !AnyToken(name) {
			notes = append(notes, MeantField(obj.prefix+name, obj.class.Type, absent)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(obj.inner)) {
		if inner := obj.inner[name]; inner != nil {
			notes = append(notes, inner.Misspelt()...)
		}
	}
	return notes
}
