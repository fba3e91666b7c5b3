package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sub is the object of that name; an absent one is empty, so that every getter gives its default.
func (cfg *config) sub(name string) *config {
	s := newConfig(cfg.file, cfg.prefix+name+".", nil, cfg.shared)
	if cfg.has(name) && json.Unmarshal(cfg.members[name], &s.members) != nil {
		cfg.fail(name, "%s is not an object, as Transformers %s needs: correct or remove it", short(cfg.members[name]), cfg.shared.in.Name)
	}
	cfg.shared.opened = append(cfg.shared.opened, s)
	return s
}

// kind refuses an object whose model_type the caller does not read.
func (cfg *config) kind(known ...string) {
	if kind := cfg.name("model_type"); kind != "" && !slices.Contains(known, kind) {
		cfg.fail("model_type", "%q is not known here in its place (known: %s)", kind, strings.Join(known, ", "))
	}
}

func (cfg *config) objects(name string) []*config {
	raw := listOf[map[string]jsontext.Value](&cfg.fieldSet, name, "objects")
	out := make([]*config, len(raw))
	for i, members := range raw {
		out[i] = newConfig(cfg.file, fmt.Sprintf("%s%s[%d].", cfg.prefix, name, i), members, cfg.shared)
	}
	return out
}

// labels is a classifier's number of classes: num_labels, else entries of id2label, else 2.
func (cfg *fieldReader) labels() int64 {
	if cfg.has("num_labels") {
		return cfg.pos(2, "num_labels")
	}
	if cfg.has("id2label") {
		var members map[string]jsontext.Value
		if json.Unmarshal(cfg.members["id2label"], &members) != nil {
			cfg.fail("id2label", "%s is not an object", short(cfg.members["id2label"]))
		}
		return max(1, int64(len(members)))
	}
	return 2
}
