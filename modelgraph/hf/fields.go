package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// checkFields refuses a config with fields that may change the modules and that the family's rules
// do not read. It names the first by name that is not known to be harmless.
//
// Transformers' classes read only their own fields. Under their model_type, only fields that add
// modules in another model count ([tables.Adds]): the config is then not of its model_type. Under a
// foreign type, or with code next to it, the code may read any field, so all unknown ones count.
// Sizes from defaults count too, since the other config class may have other defaults.
func (f *family) checkFields(cfg *config, foreign bool) error {
	if foreign {
		if err := cfg.assumedField(); err != nil {
			return err
		}
	}
	for _, name := range cfg.unread(f) {
		v := cfg.members[name]
		if foreign || !empty(v) && (cfg.has("auto_map") || tables.Adds(name)) {
			return &tables.FieldError{File: cfg.file, Field: name, Value: short(v), ModelType: cfg.name("model_type"), Class: f.usual()}
		}
	}
	for _, s := range cfg.shared.opened {
		for _, name := range s.unread(slices.Collect(maps.Values(families))...) {
			if tables.Adds(name) && !empty(s.members[name]) && !plain[s.prefix] {
				return &tables.FieldError{File: cfg.file, Field: s.prefix + name, Value: short(s.members[name]), ModelType: cfg.name("model_type"), Class: f.usual()}
			}
		}
	}
	return nil
}

// misspelt are notes on unread fields of the config and of objects inside it. The name differs in a
// letter or two from a field that the file lacks.
func (f *family) misspelt(cfg *config) (notes []string) {
	for _, s := range append([]*config{cfg}, cfg.shared.opened...) {
		var absent []string
		for name := range cfg.shared.read {
			own, inside := strings.CutPrefix(name, s.prefix)
			if _, there := s.members[own]; inside && (!there || s.stood[own]) && !strings.Contains(own, ".") {
				absent = append(absent, own)
			}
		}
		for _, name := range s.unread(f) {
			if note := tables.MeantField(s.prefix+name, f.types[0], absent); !plain[s.prefix] {
				notes = append(notes, note...)
			}
		}
	}
	return notes
}

// plain are objects outside of the model.
var plain = map[string]bool{"auto_map.": true, "quantization_config.": true}

// unread are the sorted fields that no getter read and that are not known to be harmless.
func (cfg *config) unread(of ...*family) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.members)), func(name string) bool {
		return cfg.shared.read[cfg.prefix+name] || tables.Harmless[name] || tables.AnyToken(name) || cfg.classHas(name) ||
			slices.ContainsFunc(of, func(f *family) bool { return slices.Contains(f.unread, name) })
	})
}

// harmlessAs marks a field as read if it has the value that changes nothing.
func (cfg *fieldSet) harmlessAs(name, value string) {
	if string(cfg.members[name]) == value {
		cfg.shared.read[cfg.prefix+name] = true
	}
}

// assumedField is the first size that a foreign config leaves to a default.
func (cfg *config) assumedField() error {
	fields := cfg.shared.assumed
	if !cfg.said("tie_word_embeddings") {
		fields = append(fields, "tie_word_embeddings")
	}
	for _, name := range fields {
		if !slices.Contains(sizeless, name) && (cfg.class == nil || cfg.shared.read[name]) {
			return &tables.FieldError{File: cfg.file, Field: name, ModelType: cfg.name("model_type"), Meant: meantType(cfg.name("model_type"))}
		}
	}
	return nil
}

// sizeless are fields whose default may be another's: they size no module.
var sizeless = []string{"num_experts_per_tok", "sliding_window", "max_window_layers", "sliding_window_pattern"}

// runnable refuses a config that Transformers cannot run: an unknown activation, or an odd number
// of rotated elements. Cosines and sines are pairs (modeling_rope_utils.py), so they would have one
// more than a head.
func (cfg *config) runnable(graph *modelgraph.Graph) {
	all := append([]*config{cfg}, cfg.shared.opened...)
	for _, s := range all {
		for _, name := range []string{"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "projector_hidden_act"} {
			if act := s.lenient(name); act != "" && s.shared.read[s.prefix+name] && !tables.Activation[act] {
				s.fail(name, tables.NoActivation, clipName(act), s.shared.in.Name)
			}
		}
	}
	for i := range graph.Layers {
		turned, ok := graph.Layers[i].Op.(modelgraph.Rotary)
		whole := slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool { // part of a head may be odd
			attention, ok := layer.Op.(modelgraph.Attention)
			return ok && attention.HeadDim == turned.HeadDim
		})
		if !ok || turned.HeadDim%2 == 0 || !whole {
			continue
		}
		at, name := cfg, "num_attention_heads"
		for _, s := range all {
			if s.said("head_dim") {
				at, name = s, "head_dim"
			}
		}
		at.fail(name, "%d numbers of a head turn, and rotary embeddings turn pairs: Transformers' forward fails; give heads of an even size", turned.HeadDim)
	}
}
