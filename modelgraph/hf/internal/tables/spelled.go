package tables

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// fieldsOf are the file's fields of an object.
type fieldsOf map[string]any

// hubFields convert fields of published files as the config class's __post_init__ does
// (configuration_*.py of Transformers 5.24). Builds have no such fields, so the table begins with
// the converted ones.
var hubFields = map[string]func(fieldsOf, *ConfigClass){
	"Exaone4_5_Config":  inner("text_config", "exaone4_5_text", "exaone4"),
	"Kimi_K25Config":    inner("text_config", "kimi_k2", "deepseek_v3"),
	"MiniMaxM3VLConfig": inner("vision_config", "clip_vision_model", "minimax_m3_vl_vision"),
	"Qwen2VLConfig":     inner("vision_config", "qwen2_vl", "qwen2_vl_vision"),
	"Step3p7Config": func(said fieldsOf, _ *ConfigClass) {
		for _, name := range []string{"text_config", "vision_config"} {
			if config, ok := said[name].(map[string]any); ok {
				config = maps.Clone(config)
				delete(config, "model_type")
				said[name] = config
			}
		}
	},
	"CsmConfig":                func(said fieldsOf, _ *ConfigClass) { said.take("tie_word_embeddings") }, // tie_codebooks_embeddings decides
	"DeepseekV32Config":        func(said fieldsOf, _ *ConfigClass) { said.move("num_experts", "n_routed_experts") },
	"DeepseekV4Config":         deepseekV4,
	"DiffusionGemmaTextConfig": perLayer, "EmbeddingGemma2TextConfig": perLayer, "Gemma4TextConfig": perLayer, "Gemma4UnifiedTextConfig": perLayer,
	"Glm5NextTextConfig": indexerTypes, "GlmMoeDsaConfig": glmMoeDsa, "MistralLarge4TextConfig": indexerTypes,
	"KimiLinearConfig": kimiLinear,
	"Lfm2Config":       lfm2Fields, "Lfm2MoeConfig": lfm2Fields,
	"MiMoV2FlashConfig":     func(said fieldsOf, _ *ConfigClass) { said.take("sliding_window_size") }, // a window has no tensors
	"MiniMaxM3VLTextConfig": minimaxM3,
	"Step3p7TextConfig":     step3p7,
	"T5GemmaConfig":         func(said fieldsOf, _ *ConfigClass) { said.take("initializer_range") },
	"TimmWrapperConfig":     func(said fieldsOf, _ *ConfigClass) { said.take("label_names") },
}

// olderNames convert fields in all releases.
var olderNames = map[string]func(fieldsOf){
	"CLIPTextConfig": tieless, "CLIPVisionConfig": tieless, "SiglipTextConfig": tieless, "SiglipVisionConfig": tieless,
	"BloomConfig": func(said fieldsOf) { said.move("n_embed", "hidden_size") },
	"GPTNeoXConfig": func(said fieldsOf) {
		said.take("partial_rotary_factor") // rotary_pct alone counts (GPTNeoXConfig.convert_rope_params_to_dict)
		said.move("rotary_pct", "partial_rotary_factor")
		said.take("rotary_emb_base") // no tensor has it
	},
}

// tieless drops the switch of ties in configs of models that have none.
func tieless(said fieldsOf) { said.take("tie_word_embeddings") }

// unsaid are fields that older config classes lack and their models look for (SiglipVisionTransformer).
var unsaid = map[string]map[string]any{"SiglipVisionConfig": {"vision_use_head": true}}

// spelled are the file's fields of an object, by the names of its class.
func spelled(c *ConfigClass, said map[string]any) map[string]any {
	if change := hubFields[c.Config]; change != nil && len(said) > 0 {
		said = maps.Clone(said)
		change(said, c)
	}
	if types, ok := said["layer_types"].([]any); ok && slices.ContainsFunc(types, func(x any) bool { text, _ := x.(string); return legacyLayers[text] != nil }) {
		types = slices.Clone(types)
		for i, x := range types {
			text, _ := x.(string)
			if to := legacyLayers[text]; to != nil {
				types[i] = to
			}
		}
		said = maps.Clone(said)
		said["layer_types"] = types
	}
	return said
}

// legacyLayers are renamed layer_types (configuration_utils.py, _LEGACY_LAYER_TYPE_REMAP).
var legacyLayers = map[string]any{
	"mamba": "linear_attention", "attention": "full_attention",
	"deepseek_sparse_attention": "indexed_attention", "qwen_sparse_attention": "indexed_attention",
}

func (said fieldsOf) take(name string) any {
	v := said[name]
	delete(said, name)
	return v
}

func (said fieldsOf) move(from, to string) {
	if v := said.take(from); v != nil {
		said[to] = v
	}
}

// number is a field, or the default of its class.
func (said fieldsOf) number(name string, c *ConfigClass) float64 {
	v, ok := number(said[name])
	if !ok && c != nil {
		v, _ = number(c.Fields[name])
	}
	return v
}

// list sets a field that the file lacks to a list with an entry for each layer.
func (said fieldsOf) list(name string, n float64, of func(i int) any) {
	if said[name] != nil || n > maxRounds {
		return
	}
	list := make([]any, 0, max(int(n), 0))
	for i := range int(n) {
		list = append(list, of(i))
	}
	said[name] = list
}

// chosen sets a field to one of two texts for each element of a list.
func (said fieldsOf) chosen(name string, from any, yes, no string) {
	if from, ok := from.([]any); ok {
		said.list(name, float64(len(from)), func(i int) any {
			if truth(from[i]) {
				return yes
			}
			return no
		})
	}
}

// inner gives the config inside the model_type that its class has now.
func inner(name, was, is string) func(fieldsOf, *ConfigClass) {
	return func(said fieldsOf, _ *ConfigClass) {
		if config, ok := said[name].(map[string]any); ok && config["model_type"] == was {
			config = maps.Clone(config)
			config["model_type"], said[name] = is, config
		}
	}
}

func lfm2Fields(said fieldsOf, _ *ConfigClass) {
	said.move("tie_embedding", "tie_word_embeddings")
	said.move("block_ff_dim", "intermediate_size")
}

// perLayer reads a saved Gemma 4's per_layer_config: the different fields of full layers.
func perLayer(said fieldsOf, _ *ConfigClass) {
	layers, ok := said["per_layer_config"].(map[string]any)
	types, isList := said["layer_types"].([]any)
	if !ok || !isList {
		return
	}
	first, full := fullLayers(layers, types)
	own := fieldsOf(maps.Clone(first))
	dim, kv := own.take("head_dim"), own.take("num_key_value_heads")
	// The class then gives these layers num_key_value_heads, and not the global number.
	other := kv == nil && said["attention_k_eq_v"] == true && said["num_global_key_value_heads"] != nil
	if full != len(layers) || len(own) > 0 || full == 0 || other {
		return
	}
	delete(said, "per_layer_config")
	said["global_head_dim"] = dim
	if kv != nil {
		said["num_global_key_value_heads"] = kv
	}
}

// fullLayers are the fields that all full layers have, and the number of these layers; 0: they differ.
func fullLayers(layers map[string]any, types []any) (first map[string]any, full int) {
	for i, kind := range types {
		if kind != "full_attention" {
			continue
		}
		layer, there := layers[strconv.Itoa(i)].(map[string]any)
		if !there { // with zeros before it
			layer, there = layers[fmt.Sprintf("%0*d", len(strconv.Itoa(len(types)-1)), i)].(map[string]any)
		}
		full++
		if full == 1 {
			first = layer
		}
		if !there || !DeepEqual(first, layer) {
			return nil, 0
		}
	}
	return first, full
}

func glmMoeDsa(said fieldsOf, c *ConfigClass) {
	said.take("head_dim") // the class takes qk_rope_head_dim
	indexerTypes(said, c)
}

// indexerTypes makes the layers that run an indexer, of GLM-5 and others.
func indexerTypes(said fieldsOf, c *ConfigClass) {
	said.move("num_experts", "n_routed_experts")
	pattern, freq, offset := said.take("index_topk_pattern"), said.take("index_topk_freq"), said.take("index_skip_topk_offset")
	letters := map[string]any{"F": "full", "S": "shared"}
	switch pattern := pattern.(type) {
	case string:
		said.list("indexer_types", float64(len(pattern)), func(i int) any { return letters[pattern[i:i+1]] })
	case []any:
		said.list("indexer_types", float64(len(pattern)), func(i int) any { return pattern[i] })
	case nil:
		if freq == nil && offset == nil {
			return
		}
		every, _ := number(freq)
		first, ok := number(offset)
		if !ok {
			first = 2
		}
		said.list("indexer_types", said.number("num_hidden_layers", c), func(i int) any {
			if int(max(float64(i)-first+1, 0))%int(max(every, 1)) == 0 {
				return "full"
			}
			return "shared"
		})
	}
}
