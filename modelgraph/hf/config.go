package hf

import (
	"fmt"
	"strings"

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
