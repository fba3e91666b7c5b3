package hf

import (
	"fmt"
	"strconv"
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
	fault  *error // shared by sub-objects: the first fault
}

// Bounds of what a config may ask for: far above any model, low enough that
// no product overflows and no loop runs away.
const (
	maxDim    = 1 << 40
	maxLayers = 10_000
)

func parseConfig(file string, data []byte) (*config, error) {
	c := &config{file: file, fault: new(error)}
	if err := modelgraph.DecodeJSON(file, pythonJSON(data), &c.m, false); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *config) fail(name, format string, args ...any) {
	if *c.fault == nil {
		*c.fault = &modelgraph.SyntaxError{File: c.file, Place: c.prefix + name, Msg: fmt.Sprintf(format, args...)}
	}
}

// has reports whether a field is there and not null.
func (c *config) has(name string) bool {
	v, ok := c.m[name]
	return ok && v.Kind() != 'n'
}

// pick is the first of the names that the config has, else the first name:
// families have older spellings (n_embd for hidden_size).
func (c *config) pick(names []string) string {
	for _, n := range names {
		if c.has(n) {
			return n
		}
	}
	return names[0]
}

// dim reads a size: an integer from 0 to 2^40. names are spellings.
func (c *config) dim(def int64, names ...string) int64 {
	name := c.pick(names)
	if !c.has(name) {
		return def
	}
	n, err := integer(c.m[name])
	if err != nil || n < 0 || n > maxDim {
		c.fail(name, "%s is not a size (an integer from 0 to 2^40)", short(c.m[name]))
		return def
	}
	return n
}

// pos is dim without zero.
func (c *config) pos(def int64, names ...string) int64 {
	n := c.dim(def, names...)
	if n == 0 {
		c.fail(c.pick(names), "0 is not a size: it must be 1 or more")
		return 1
	}
	return n
}

// count reads a number of layers.
func (c *config) count(def int64, names ...string) int64 {
	n := c.dim(def, names...)
	if n > maxLayers {
		c.fail(c.pick(names), "%d is more than %d layers", n, maxLayers)
		return 0
	}
	return n
}

func (c *config) bool(def bool, names ...string) bool {
	name := c.pick(names)
	if !c.has(name) {
		return def
	}
	var b bool
	if json.Unmarshal(c.m[name], &b) != nil {
		c.fail(name, "%s is not true or false", short(c.m[name]))
	}
	return b
}

func (c *config) str(def string, names ...string) string {
	name := c.pick(names)
	if !c.has(name) {
		return def
	}
	var s string
	if json.Unmarshal(c.m[name], &s) != nil {
		c.fail(name, "%s is not a string", short(c.m[name]))
	}
	return s
}

func (c *config) float(def float64, names ...string) float64 {
	name := c.pick(names)
	if !c.has(name) {
		return def
	}
	var f float64
	if json.Unmarshal(c.m[name], &f) != nil {
		c.fail(name, "%s is not a number", short(c.m[name]))
	}
	return f
}

// dims reads a list of sizes; nil where the field is absent. A single number
// counts as a list of one.
func (c *config) dims(name string) []int64 {
	if !c.has(name) {
		return nil
	}
	if c.m[name].Kind() == '0' {
		return []int64{c.dim(0, name)}
	}
	var raw []jsontext.Value
	if json.Unmarshal(c.m[name], &raw) != nil || len(raw) > maxLayers {
		c.fail(name, "%s is not a list of sizes", short(c.m[name]))
		return nil
	}
	out := make([]int64, len(raw))
	for i, v := range raw {
		n, err := integer(v)
		if err != nil || n < 0 || n > maxDim {
			c.fail(fmt.Sprintf("%s[%d]", name, i), "%s is not a size (an integer from 0 to 2^40)", short(v))
			return nil
		}
		out[i] = n
	}
	return out
}

func (c *config) strs(name string) []string {
	if !c.has(name) {
		return nil
	}
	var out []string
	if json.Unmarshal(c.m[name], &out) != nil || len(out) > maxLayers {
		c.fail(name, "%s is not a list of strings", short(c.m[name]))
		return nil
	}
	return out
}

// sub is the object of that name; an absent one is empty, so that every
// getter gives its default.
func (c *config) sub(name string) *config {
	s := &config{file: c.file, prefix: c.prefix + name + ".", fault: c.fault}
	if c.has(name) && json.Unmarshal(c.m[name], &s.m) != nil {
		c.fail(name, "%s is not an object", short(c.m[name]))
	}
	return s
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
		out[i] = &config{file: c.file, prefix: fmt.Sprintf("%s%s[%d].", c.prefix, name, i), m: m, fault: c.fault}
	}
	return out
}

// labels is the number of classes of a classifier: num_labels, else the
// entries of id2label, else 2 (Transformers' PretrainedConfig).
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

// integer reads 128 and, as some configs have it, 128.0.
func integer(v jsontext.Value) (int64, error) {
	s := strings.TrimSuffix(string(v), ".0")
	return strconv.ParseInt(s, 10, 64)
}

func short(v jsontext.Value) string {
	if len(v) > 60 {
		return strings.ToValidUTF8(string(v[:60]), "") + "…"
	}
	return string(v)
}

// pythonJSON turns the bare words that Python's json module writes for
// non-finite numbers into null: no dimension is one of them.
func pythonJSON(data []byte) []byte {
	out := data
	inString := false
	for i := 0; i < len(out); i++ {
		switch ch := out[i]; {
		case inString && ch == '\\':
			i++
		case ch == '"':
			inString = !inString
		case !inString && (ch == 'N' || ch == 'I' || ch == '-'):
			for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
				if strings.HasPrefix(string(out[i:min(len(out), i+len(word))]), word) {
					null := "null" + strings.Repeat(" ", max(0, len(word)-4))
					out = append(append(append([]byte{}, out[:i]...), null...), out[i+len(word):]...)
				}
			}
		}
	}
	return out
}
