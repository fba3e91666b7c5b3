package hf

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// Short names that all readers use.
var clipName, short, typeNamed, empty = spell.Clip, spell.Short, spell.DType, tables.Empty

// config is a config.json or an object inside one, with its class's defaults.
type config struct {
	fieldReader
	class *configClass // whose defaults are among the members; nil: none are
	plain *config      // without them; nil if there are none
}

// fieldReader gives fields their types. Getters take the family's default; a value of the wrong
// type or out of range is a fault.
type fieldReader struct{ fieldSet }

// fieldSet is the fields of an object and their faults. Reading ends with the first fault.
type fieldSet struct {
	file    string
	prefix  string // "text_config." inside the object of that name
	members map[string]jsontext.Value
	shared  *reading
	stood   map[string]bool // members that are the class's defaults
}

// newConfig is a config without a class.
func newConfig(file, prefix string, members map[string]jsontext.Value, shared *reading) *config {
	return &config{fieldReader: fieldReader{fieldSet{file: file, prefix: prefix, members: members, shared: shared}}}
}

// reading is shared by a config and the objects inside it.
type reading struct {
	in     *tables.Release // of Transformers
	asked  bool            // the user names it
	drifts []string        // how other releases read the config
	linear []string        // modules that are nn.Linear, with stars, if the table names them
	fault  error           // the first
	read   map[string]bool // fields by their full names
	opened []*config       // objects inside the file that were read
	// assumed are the sizes that a default stood in for, in order.
	assumed []string
	// unknown are values that running needs and the file lacks.
	unknown []string
}

func parseConfig(file string, data []byte) (*config, error) {
	cfg := newConfig(file, "", nil, &reading{in: tables.Newest, read: make(map[string]bool)})
	if err := modelgraph.DecodeJSON(file, spell.JSON(data), &cfg.members, false); err != nil {
		return nil, err
	}
	return cfg, nil
}

// again is the config with no field read.
func (cfg *config) again() *config {
	return newConfig(cfg.file, "", cfg.members, &reading{in: cfg.shared.in, asked: cfg.shared.asked, read: make(map[string]bool)})
}

// fault is the first one, nil if there is none.
func (cfg *fieldSet) fault() error { return cfg.shared.fault }

func (cfg *fieldSet) fail(name, format string, args ...any) {
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
func (cfg *fieldSet) has(name string) bool {
	cfg.shared.read[cfg.prefix+name] = true
	v, ok := cfg.members[name]
	return ok && v.Kind() != 'n'
}

// null reports whether the config has the field and it is null.
func (cfg *fieldSet) null(name string) bool {
	_, there := cfg.members[name]
	return there && !cfg.has(name)
}

// pick is the first of the names that the config has, else the first with null, else the first
// name. Families have older spellings (n_embd for hidden_size).
func (cfg *fieldSet) pick(names []string) string {
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

// given picks a getter's field, and reports whether it has a value. A null is an error, as in
// Transformers' typed configs unless the type has None: for those use [has], [config.orNull] or
// [config.optional].
func (cfg *fieldSet) given(what string, names []string) (name string, ok bool) {
	name = cfg.pick(names)
	switch {
	case cfg.has(name):
		return name, true
	case cfg.null(name):
		cfg.fail(name, "null is not %s", what)
	}
	return name, false
}
