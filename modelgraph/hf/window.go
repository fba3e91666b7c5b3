package hf

import (
	"fmt"
	"slices"
	"strings"
)

// Known entries of layer_types (configuration_utils.py: ALLOWED_ATTN_LAYER_TYPES has more).
const (
	slidingAttention = "sliding_attention"
	fullAttention    = "full_attention"
	linearAttention  = "linear_attention" // a state in place of keys and values
)

// legacyKinds are older entries of layer_types (configuration_utils.py: remap_legacy_layer_types).
var legacyKinds = map[string]string{"mamba": linearAttention, "attention": fullAttention}

// readWindow reads sliding_window: def if absent, 0 (all tokens) if null.
func readWindow(cfg *config, def int64) int64 {
	if cfg.null("sliding_window") {
		return 0
	}
	return cfg.dim(def, "sliding_window")
}

// layerTypes reads layer_types, one entry a layer; if the config has none, sliding reports the
// layers with a window.
func layerTypes(cfg *config, layers int64, sliding func(layer int64) bool) []string {
	return kindsOf(cfg, layers, []string{slidingAttention, fullAttention}, func(i int64) string {
		if sliding(i) {
			return slidingAttention
		}
		return fullAttention
	})
}

// kindsOf reads layer_types, with entries of the known kinds; without it, kind returns a layer's.
func kindsOf(cfg *config, layers int64, known []string, kind func(layer int64) string) []string {
	types := make([]string, layers)
	given := cfg.strs("layer_types")
	if cfg.has("layer_types") && int64(len(given)) != layers {
		cfg.uneven("layer_types", len(given), layers)
		given = nil
	}
	for i := range types {
		if len(given) > 0 && legacyKinds[given[i]] != "" && slices.Contains(known, linearAttention) {
			given[i] = legacyKinds[given[i]]
		}
		switch {
		case given == nil:
			types[i] = kind(int64(i))
		case slices.Contains(known, given[i]):
			types[i] = given[i]
		default:
			types[i] = fullAttention
			cfg.fail(fmt.Sprintf("layer_types[%d]", i), "%q is not %s", given[i], strings.Join(known, " or "))
		}
	}
	return types
}

// windows is the attention per layer: a window where its type slides.
func (attn attention) windows(types []string, window int64) func(layer int64) part {
	return func(i int64) part {
		if types[i] == slidingAttention {
			return attn.at(window)
		}
		return attn.at(0)
	}
}

// alternate slides on the even layers (Gemma 2, gpt-oss).
func alternate(layer int64) bool { return layer%2 == 0 }
