package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// objects reads a config and the objects inside it.
type objects struct {
	file string
	in   *Release
	err  error
}

func (from *objects) fail(field, format string, args ...any) {
	if from.err == nil {
		from.err = &Error{File: from.file, Field: field, Text: fmt.Sprintf(format, args...)}
	}
}

// read is an object of a config class; absent are its fields if the file has none.
func (from *objects) read(prefix, class string, said, absent map[string]any) *Object {
	c := line[ConfigClass](from.in, "config", class)
	if c == nil {
		from.fail(prefix+"model_type", "Transformers %s has no config class %q that is known here", from.in.Name, spell.Clip(class))
		return nil
	}
	if rename := olderNames[c.Config]; rename != nil {
		said = maps.Clone(said)
		rename(said)
	}
	if from.in.At == Newest.At {
		said = spelled(c, said)
	} else {
		c.Made = nil // which is the newest release's
	}
	if prefix != "" {
		said = constructed(c, said)
	}
	said = ofDicts(c, said)
	obj := &Object{class: c, values: maps.Clone(c.Fields), inner: make(map[string]*Object), Extra: make(map[string]any), said: make(map[string]any), prefix: prefix}
	if obj.values == nil {
		obj.values = make(map[string]any)
	}
	for name, v := range unsaid[c.Config] {
		if _, has := obj.values[name]; !has {
			obj.values[name] = v
		}
	}
	maps.Copy(obj.values, absent)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if c.Alias[name] == "" {
			from.set(obj, name, said[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if to := c.Alias[name]; to != "" {
			before := obj.values[to]
			from.set(obj, to, said[name])
			if !DeepEqual(before, obj.values[to]) {
				obj.aliased = append(obj.aliased, aliasedField{to, before})
			}
		}
	}
	obj.rope()
	obj.values["num_labels"] = labels(c, said)
	for _, name := range slices.Sorted(maps.Keys(c.Inner)) {
		from.inside(obj, name, cmp.Or(said[name], absent[name]))
	}
	return obj
}

// ofDicts are fields in which an object x_config_dict, as the first configs of CLIP have it, replaces x_config (CLIPConfig.__post_init__).
func ofDicts(c *ConfigClass, said map[string]any) map[string]any {
	for name := range c.Inner {
		if whole := name + "_dict"; said[whole] != nil && slices.Contains(c.Pops, whole) {
			said = maps.Clone(said)
			said[name] = said[whole]
			delete(said, whole)
		}
	}
	return said
}

func (from *objects) set(obj *Object, name string, v any) {
	_, field := obj.class.Fields[name]
	_, inner := obj.class.Inner[name]
	v = lastLayer(obj.class.Config, name, v)
	obj.said[name] = v
	switch {
	case inner:
	case name == "per_layer_config" && v != nil:
		from.fail(obj.prefix+name, "layers with configs of their own are not known here")
	case !field && slices.Contains(obj.class.Pops, name) && v != nil:
		from.fail(obj.prefix+name, "a %s turns it into other fields, which is not known here", obj.class.Config)
	case !field:
		obj.Extra[name] = v
		if _, given := obj.values[name]; given { // by the config around this one
			obj.values[name] = v
		}
	case v == nil && obj.class.Fields[name] != nil && !slices.Contains(obj.class.Null, name):
		from.fail(obj.prefix+name, "null is no value of this field")
	default:
		obj.values[name] = v
	}
}

// lastFull are config classes whose __post_init__ makes the last of layer_types full_attention.
var lastFull = []string{"DiffusionGemmaTextConfig", "EmbeddingGemma2TextConfig", "Gemma4TextConfig", "Gemma4UnifiedTextConfig"}

const layerKinds = "layer_types"

func lastLayer(config, name string, v any) any {
	if list, ok := v.([]any); ok && name == layerKinds && len(list) > 0 && slices.Contains(lastFull, config) {
		return append(slices.Clone(list[:len(list)-1]), "full_attention")
	}
	return v
}

// rope converts older spellings as modeling_rope_utils.py, convert_rope_params_to_dict, does.
func (obj *Object) rope() {
	if _, has := obj.class.Fields["rope_parameters"]; !has {
		return
	}
	if scaling, ok := obj.Extra["rope_scaling"].(map[string]any); ok && len(scaling) > 0 {
		obj.values["rope_parameters"] = scaling
	}
	delete(obj.Extra, "rope_scaling")
	theta := obj.Extra["rope_theta"]
	delete(obj.Extra, "rope_theta")
	if part := obj.Extra["partial_rotary_factor"]; part != nil {
		old, _ := obj.values["rope_parameters"].(map[string]any)
		params := map[string]any{"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}
		maps.Copy(params, old)
		obj.values["rope_parameters"] = params
		delete(obj.Extra, "partial_rotary_factor")
	}
}

// constructed are the fields that the constructor of an inner config reads. The names of labels, and
// another name of their number, are read by TimmWrapperConfig.from_dict alone.
func constructed(c *ConfigClass, said map[string]any) map[string]any {
	for name, to := range c.Alias {
		if to == "num_labels" {
			said = maps.Clone(said)
			delete(said, name)
			delete(said, "label_names")
		}
	}
	return said
}

// labels is the number of labels. A class may have another name for it, which counts first.
func labels(c *ConfigClass, said map[string]any) any {
	for name, to := range c.Alias {
		if n, ok := said[name].(float64); ok && to == "num_labels" {
			return n
		}
	}
	if ids, ok := said["id2label"].(map[string]any); ok {
		return float64(len(ids))
	}
	if n, ok := said["num_labels"].(float64); ok {
		return n
	}
	return max(c.Labels, 2)
}

// inside reads an object of an object.
func (from *objects) inside(obj *Object, name string, v any) {
	info := obj.class.Inner[name]
	class, prefix := info.Config, obj.prefix+name+"."
	switch said := v.(type) {
	case nil:
		if info.None {
			obj.values[name] = nil
			return
		}
		absent := maps.Clone(info.Absent)
		for field, outer := range info.Outer {
			if absent == nil {
				absent = make(map[string]any)
			}
			absent[field] = obj.values[outer]
		}
		obj.inner[name] = from.read(prefix, class, nil, absent)
	case map[string]any:
		kind, _ := said["model_type"].(string)
		if info.Auto && kind != "" {
			if class = from.in.ConfigOf(kind); class == "" {
				from.fail(prefix+"model_type", "%q is no type of Transformers %s", spell.Clip(kind), from.in.Name)
				return
			}
		}
		if kind != "" && class != "" && from.otherType(kind, class) {
			from.fail(prefix+"model_type", "%q is not the %s that a %s of Transformers %s has here: correct it", spell.Clip(kind), class, obj.class.Config, from.in.Name)
			return
		}
		if class != info.Config && len(info.Given) > 0 {
			from.fail(prefix+"model_type", "%q: which of its fields a %s sets is known for a %s alone", spell.Clip(fmt.Sprint(said["model_type"])), obj.class.Config, info.Config)
			return
		}
		obj.inner[name] = from.read(prefix, class, said, info.Given)
	default:
		from.fail(obj.prefix+name, "%s is not an object, as Transformers %s needs: correct or remove it", InJSON(v), from.in.Name)
		return
	}
	obj.values[name] = "{}"
}

// otherType reports a model_type that is not a config class's.
func (from *objects) otherType(kind, class string) bool {
	c := line[ConfigClass](from.in, "config", class)
	return kind != "" && c != nil && c.Type != kind && from.in.ConfigOf(kind) != class
}
