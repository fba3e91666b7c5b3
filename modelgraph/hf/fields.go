package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// checkFields refuses a config whose fields may say of the modules what the
// family's rules do not read: the first by name of those that were neither read
// nor are known to be harmless.
//
// Transformers' own classes read no fields but their own, so under a model_type
// of theirs only the fields count that add modules in another model ([adds]):
// such a config is not what its model_type says. Under a foreign type, or with
// code of its own next to it, the code may read any field, so all that are not
// known count; and so do sizes that a default stood in for, as the defaults are
// the other config class's.
func (f *family) checkFields(cfg *config, foreign bool) error {
	if foreign {
		if err := cfg.assumedField(); err != nil {
			return err
		}
	}
	for _, name := range cfg.unread(f) {
		v := cfg.members[name]
		if foreign || !empty(v) && (cfg.has("auto_map") || adds(name)) {
			return &unknownFieldError{File: cfg.file, Field: name, Value: short(v), ModelType: cfg.name("model_type"), Class: f.usual()}
		}
	}
	for _, s := range cfg.shared.opened {
		for _, name := range s.unread(slices.Collect(maps.Values(families))...) {
			if adds(name) && !empty(s.members[name]) && !plain[s.prefix] {
				return &unknownFieldError{File: cfg.file, Field: s.prefix + name, Value: short(s.members[name]), ModelType: cfg.name("model_type"), Class: f.usual()}
			}
		}
	}
	return nil
}

// misspelt are notes on fields that nothing reads, and whose name differs in a letter or
// two from a field that the config lacks: its default is counted in its place.
func (f *family) misspelt(cfg *config) (notes []string) {
	var absent []string
	for _, name := range slices.Sorted(maps.Keys(cfg.shared.read)) {
		if _, there := cfg.members[name]; (!there || cfg.stood[name]) && !strings.Contains(name, ".") {
			absent = append(absent, name)
		}
	}
	for _, name := range cfg.unread(f) {
		if near := modelgraph.Nearest(name, absent, 1, 1+len(name)/12); len(name) > 4 && len(near) > 0 {
			notes = append(notes, fmt.Sprintf("the config has %q, which %s does not read: did you mean %q? Its default is counted", clipName(name), f.types[0], near[0]))
		}
	}
	return notes
}

// plain are objects that hold no part of the model.
var plain = map[string]bool{"auto_map.": true, "quantization_config.": true}

// unread are the fields, sorted, that no getter read and that neither all
// families nor these ones know to be harmless.
func (cfg *config) unread(of ...*family) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.members)), func(name string) bool {
		return cfg.shared.read[cfg.prefix+name] || harmless[name] || anyToken(name) || cfg.classHas(name) ||
			slices.ContainsFunc(of, func(f *family) bool { return slices.Contains(f.unread, name) })
	})
}

// harmlessAs marks a field as read if it has the one value that changes
// nothing.
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
			return &unknownFieldError{File: cfg.file, Field: name, ModelType: cfg.name("model_type")}
		}
	}
	return nil
}

// sizeless are fields whose default may be another's: they size no module.
var sizeless = []string{"num_experts_per_tok", "sliding_window", "max_window_layers", "sliding_window_pattern"}

// adds reports whether a field of that name adds modules in some family:
// experts, another tower, adapters, a recurrence, layers unlike each other.
func adds(name string) bool {
	return slices.ContainsFunc([]string{
		"expert", "moe", "lora_rank", "vision", "visual", "audio", "speech", "text_config", "llm_config", "mamba", "ssm_", "index_",
		"linear_num", "linear_conv", "per_layer", "block_config", "layer_config", "pruned_heads", "altup", "adapter",
	}, func(component string) bool { return strings.Contains(name, component) })
}
