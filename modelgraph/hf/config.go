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
	file    string
	prefix  string // "text_config." inside the object of that name
	members map[string]jsontext.Value
	shared  *reading
	class   *configClass    // whose defaults are among the members; nil: none are
	stood   map[string]bool // those members that are defaults
}

// reading is what a config and the objects inside it share.
type reading struct {
	fault  error           // the first
	read   map[string]bool // fields by their full names
	opened []*config       // objects inside the file that were read
	// assumed are the sizes that a default stood in for, in order.
	assumed []string
	// unknown is what running needs and the file does not say.
	unknown []string
}

func parseConfig(file string, data []byte) (*config, error) {
	cfg := &config{file: file, shared: &reading{read: make(map[string]bool)}}
	if err := modelgraph.DecodeJSON(file, pythonJSON(data), &cfg.members, false); err != nil {
		return nil, err
	}
	return cfg, nil
}

// again is the config as nobody has read it.
func (cfg *config) again() *config {
	return &config{file: cfg.file, members: cfg.members, shared: &reading{read: make(map[string]bool)}}
}

// fault is the first one, nil where there is none.
func (cfg *config) fault() error { return cfg.shared.fault }

func (cfg *config) fail(name, format string, args ...any) {
	if cfg.shared.fault != nil {
		return
	}
	const maxBytes = 1000 // a value may be of any length
	msg := fmt.Sprintf(format, args...)
	if len(msg) > maxBytes {
		msg = strings.ToValidUTF8(msg[:maxBytes], "") + "…"
	}
	cfg.shared.fault = &modelgraph.SyntaxError{File: cfg.file, Place: cfg.prefix + name, Msg: msg}
}

// has reports whether a field is there and not null.
func (cfg *config) has(name string) bool {
	cfg.shared.read[cfg.prefix+name] = true
	v, ok := cfg.members[name]
	return ok && v.Kind() != 'n'
}

// null reports whether the config has the field and it is null.
func (cfg *config) null(name string) bool {
	_, there := cfg.members[name]
	return there && !cfg.has(name)
}

// pick is the first of the names that the config has, else the first that it
// has as null, else the first name: families have older spellings (n_embd for
// hidden_size).
func (cfg *config) pick(names []string) string {
	for _, name := range names {
		cfg.shared.read[cfg.prefix+name] = true
	}
	for _, there := range []func(string) bool{cfg.has, cfg.null} {
		for _, name := range names {
			if there(name) {
				return name
			}
		}
	}
	return names[0]
}

// given picks the field that a getter reads, and reports whether it has a
// value. A null is at fault, as in Transformers' typed configs, which take
// one only where the type has None: those fields are asked for with [has],
// [config.orNull] or [config.optional].
func (cfg *config) given(what string, names []string) (name string, ok bool) {
	name = cfg.pick(names)
	switch {
	case cfg.has(name):
		return name, true
	case cfg.null(name):
		cfg.fail(name, "null is not %s", what)
	}
	return name, false
}
