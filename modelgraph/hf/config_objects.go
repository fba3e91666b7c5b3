package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sub is the object of that name; an absent one is empty, so that every
// getter gives its default.
func (c *config) sub(name string) *config {
	s := &config{file: c.file, prefix: c.prefix + name + ".", shared: c.shared}
	if c.has(name) && json.Unmarshal(c.m[name], &s.m) != nil {
		c.fail(name, "%s is not an object", short(c.m[name]))
	}
	c.shared.opened = append(c.shared.opened, s)
	return s
}

// kind refuses an object whose model_type is another than those that the
// caller reads.
func (c *config) kind(known ...string) {
	if t := c.name("model_type"); t != "" && !slices.Contains(known, t) {
		c.fail("model_type", "%q is not known here in its place (known: %s)", t, strings.Join(known, ", "))
	}
}

// objects reads a list of objects.
func (c *config) objects(name string) []*config {
	var raw []map[string]jsontext.Value
	if c.has(name) && (json.Unmarshal(c.m[name], &raw) != nil || len(raw) > maxLayers) {
		c.fail(name, "%s is not a list of objects", short(c.m[name]))
		return nil
	}
	out := make([]*config, len(raw))
	for i, m := range raw {
		out[i] = &config{file: c.file, prefix: fmt.Sprintf("%s%s[%d].", c.prefix, name, i), m: m, shared: c.shared}
	}
	return out
}

// labels is the number of classes of a classifier: num_labels, else the
// entries of id2label, else 2 (Transformers' PreTrainedConfig).
func (c *config) labels() int64 {
	if c.has("num_labels") {
		return c.pos(2, "num_labels")
	}
	if c.has("id2label") {
		var m map[string]jsontext.Value
		if json.Unmarshal(c.m["id2label"], &m) != nil {
			c.fail("id2label", "%s is not an object", short(c.m["id2label"]))
		}
		return max(1, int64(len(m)))
	}
	return 2
}
