package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// config is a config.json or an object inside one. Getters take the family's
// default; a value of the wrong type or out of range is kept as the fault
// that the reading ends with.
type config struct {
	file   string
	prefix string // "text_config." inside the object of that name
	m      map[string]jsontext.Value
	shared *reading
}

// reading is what a config and the objects inside it share.
type reading struct {
	fault  error           // the first
	read   map[string]bool // fields by their full names
	opened []*config       // objects inside the file that were read
	// assumed are the sizes that a default stood in for, in order.
	assumed []string
}

func parseConfig(file string, data []byte) (*config, error) {
	c := &config{file: file, shared: &reading{read: make(map[string]bool)}}
	if err := modelgraph.DecodeJSON(file, pythonJSON(data), &c.m, false); err != nil {
		return nil, err
	}
	return c, nil
}

// again is the config as nobody has read it.
func (c *config) again() *config {
	return &config{file: c.file, m: c.m, shared: &reading{read: make(map[string]bool)}}
}

// fault is the first one, nil where there is none.
func (c *config) fault() error { return c.shared.fault }

func (c *config) fail(name, format string, args ...any) {
	if c.shared.fault != nil {
		return
	}
	const most = 1000 // a value may be of any length
	msg := fmt.Sprintf(format, args...)
	if len(msg) > most {
		msg = strings.ToValidUTF8(msg[:most], "") + "…"
	}
	c.shared.fault = &modelgraph.SyntaxError{File: c.file, Place: c.prefix + name, Msg: msg}
}

// has reports whether a field is there and not null.
func (c *config) has(name string) bool {
	c.shared.read[c.prefix+name] = true
	v, ok := c.m[name]
	return ok && v.Kind() != 'n'
}

// null reports whether the config has the field and it is null.
func (c *config) null(name string) bool {
	_, there := c.m[name]
	return there && !c.has(name)
}

// pick is the first of the names that the config has, else the first that it
// has as null, else the first name: families have older spellings (n_embd for
// hidden_size).
func (c *config) pick(names []string) string {
	for _, n := range names {
		c.shared.read[c.prefix+n] = true
	}
	for _, there := range []func(string) bool{c.has, c.null} {
		for _, n := range names {
			if there(n) {
				return n
			}
		}
	}
	return names[0]
}

// given picks the field that a getter reads, and reports whether it has a
// value. A null is at fault, as in Transformers' typed configs, which take
// one only where the type has None: those fields are asked for with [has],
// [config.orNull] or [config.optional].
func (c *config) given(what string, names []string) (name string, ok bool) {
	name = c.pick(names)
	switch {
	case c.has(name):
		return name, true
	case c.null(name):
		c.fail(name, "null is not %s", what)
	}
	return name, false
}

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
