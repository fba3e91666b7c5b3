package hf

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// configsGz has the config classes of Transformers 5.17, one type a line, for families whose
// readers only name fields (fixtures/oracle/configs.py made it from Transformers itself).
//
//go:embed configs.jsonl.gz
var configsGz []byte

// configClass is one line.
type configClass struct {
	Type string `json:"type"` // model_type
	// Fields are the class's own fields with defaults; Nullable may be null.
	Fields   map[string]jsontext.Value `json:"fields"`
	Nullable []string                  `json:"nullable"`
	// Aliases are other spellings (attribute_map). With both, the alias counts: it is set last.
	Aliases map[string]string `json:"aliases"`
	// Parts are the objects inside.
	Parts map[string]configPart `json:"parts"`
	// Classes are the model classes that Auto classes build.
	Classes []string `json:"classes"`
}

// configPart is an object inside a config.
type configPart struct {
	// Type is the object's model_type: if Fixed, any other is refused; else it is the default.
	Type  string `json:"type"`
	Fixed bool   `json:"fixed"`
	// Absent are the object's fields in a config without it.
	Absent map[string]jsontext.Value `json:"absent"`
}

var configTable = embedded.New("configs.jsonl.gz", configsGz)

// configClassOf is the line of a type, nil if it has none.
func configClassOf(modelType string) *configClass {
	return embedded.First[configClass](configTable, fmt.Sprintf(`{"type":%q,`, modelType))
}

// filled is the config with its class's defaults for absent fields, under the class's names.
// Objects inside are filled when they are read ([config.sub]). A null that the class does not take
// is an error.
func (cfg *config) filled(modelType string) *config {
	class := configClassOf(modelType)
	if class == nil || cfg.class != nil {
		return cfg
	}
	out := *cfg
	out.plain = cfg
	out.class, out.members, out.stood = class, maps.Clone(cfg.members), make(map[string]bool)
	if out.members == nil {
		out.members = make(map[string]jsontext.Value)
	}
	spelled := make(map[string]string)
	for alias, name := range class.Aliases {
		if v, there := out.members[alias]; there {
			out.members[name], spelled[name] = v, alias
			cfg.shared.read[cfg.prefix+alias] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(class.Fields)) {
		switch v, there := out.members[name]; {
		case !there:
			out.members[name], out.stood[name] = class.Fields[name], true
			out.assumes(name, class.Fields[name])
		case v.Kind() == 'n' && sizeLike(class.Fields[name]) && !slices.Contains(class.Nullable, name):
			out.fail(cmp.Or(spelled[name], name), "null is not %s", aSize)
		}
	}
	return &out
}

// sizeLike is a default that is a size.
func sizeLike(v jsontext.Value) bool { return v.Kind() == '0' && !bytes.ContainsAny(v, ".e-") }

// assumes notes a size that a default replaces; a null size may be computed.
func (cfg *config) assumes(name string, v jsontext.Value) {
	size := sizeLike(v) || v.Kind() == 'n' && (strings.HasPrefix(name, "num_") || strings.HasSuffix(name, "_size") || strings.HasSuffix(name, "_rank"))
	if size && !tables.AnyToken(name) {
		cfg.shared.assumed = append(cfg.shared.assumed, cfg.prefix+name)
	}
}

// said reports a field that the file has, not null.
func (cfg *fieldSet) said(name string) bool { return cfg.has(name) && !cfg.stood[name] }

// part is the object of that name, filled as one of its type.
func (cfg *config) part(name string) *config {
	s := cfg.sub(name)
	if cfg.class == nil {
		return s
	}
	rule := cfg.class.Parts[name]
	kind := s.name("model_type")
	if rule.Fixed || kind == "" {
		kind = rule.Type
	}
	if !cfg.has(name) && len(rule.Absent) > 0 {
		s.members = maps.Clone(rule.Absent)
	}
	out := s.filled(kind)
	cfg.shared.opened[len(cfg.shared.opened)-1] = out
	return out
}

// classHas reports a field of the config's class, whose effect its reader knows.
func (cfg *config) classHas(name string) bool {
	if cfg.class == nil {
		return false
	}
	_, there := cfg.class.Fields[name]
	_, inside := cfg.class.Parts[name]
	return there || inside || cfg.class.Aliases[name] != ""
}

// tableClasses are the classes of a type whose names end as one of endings, in their order.
func tableClasses(modelType string, endings []string) []string {
	class := configClassOf(modelType)
	if class == nil {
		return nil
	}
	var classes []string
	for _, ending := range endings {
		for _, name := range class.Classes {
			if strings.HasSuffix(name, ending) {
				classes = append(classes, name)
			}
		}
	}
	return classes
}

// orZero is a size; null means 0.
func (cfg *fieldReader) orZero(name string) int64 {
	if cfg.null(name) {
		return 0
	}
	return cfg.dim(0, name)
}
