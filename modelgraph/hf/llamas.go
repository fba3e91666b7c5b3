package hf

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// This file has decoders that differ from a llama in norms, biases or windows.

// ernie: a bias in all matrices or in none.
func ernie(cfg *config) *decoder {
	model := llamaParts(cfg)
	bias := cfg.on("use_bias")
	model.attn.bias, model.attn.outBias, model.mlp.bias = bias, bias, bias
	return model.done()
}

// granite is a llama whose embeddings, sums, scores and logits are scaled.
func granite(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.scaled = true
	return model.done()
}

// ministral: windows in all layers, if there are any.
func ministral(cfg *config) *decoder {
	model := llamaParts(cfg)
	slides := cfg.has("sliding_window")
	model.sliding(readWindow(cfg, 0), func(int64) bool { return slides })
	return model.done()
}

// ministral3: the same, without windows by default.
func ministral3(cfg *config) *decoder { return ministral(cfg) }

// seedOSS: a separate switch for the bias of the projection out of attention.
func seedOSS(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.outBias = cfg.on("attention_out_bias")
	model.dropped(0.1, "residual_dropout")
	return model.done()
}

// smolLM3: no positions in every fourth layer, windows on request.
func smolLM3(cfg *config) *decoder {
	model := llamaParts(cfg)
	width := qwenWindow(cfg)
	interval, rope := cfg.pos(0, "no_rope_layer_interval"), cfg.dims("no_rope_layers")
	turns := func(i int64) bool {
		if i < int64(len(rope)) {
			return rope[i] != 0
		}
		return (i+1)%interval != 0
	}
	types := layerTypes(cfg, model.layers, func(i int64) bool { return width > 0 && !turns(i) })
	model.attention = func(i int64) part {
		at := model.attn
		at.unturned = !turns(i)
		return at.windows(types, width)(i)
	}
	return model.done()
}

// olmo2: norms after the parts, norms on q and k over all heads.
func olmo2(cfg *config) *decoder { return olmo2Parts(cfg).done() }

func olmo2Parts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.form, model.normFP32 = olmo2Block, true
	model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.RMSNorm, true
	model.attn.qkNormFP32, model.attn.fp32Rotation = true, true
	return model
}

// hunyuan: norms on q and k with other names.
func hunyuan(cfg *config) *decoder {
	for _, name := range []string{"num_experts", "moe_topk", "num_shared_expert"} { // dense configs have the mixture's fields too
		cfg.harmlessAs(name, "1")
	}
	return hunyuanParts(cfg).done()
}

func hunyuanParts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.attn.normed("query_layernorm", "key_layernorm", modelgraph.RMSNorm, false)
	return model
}

// exaone4: norms after the parts, on q and k; windows in all but every sliding_window_pattern-th
// layer.
func exaone4(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.form, model.attn.qkNorm = olmo2Block, modelgraph.RMSNorm
	pattern := int64(0)
	// A pattern in letters is ignored: the first configs have layer_types next to it.
	if letters := cfg.has("sliding_window_pattern") && cfg.members["sliding_window_pattern"].Kind() == '"'; !letters || !cfg.has("layer_types") {
		pattern = cfg.orZero("sliding_window_pattern")
	}
	if cfg.null("sliding_window") {
		pattern = 0
	}
	model.sliding(readWindow(cfg, 0), func(i int64) bool { return pattern > 0 && (i+1)%pattern != 0 })
	return model.done()
}

// nemotron: LayerNorms of 1 + weight, a feed-forward without a gate.
func nemotron(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.mlp.up, model.mlp.down = "up_proj", "down_proj"
	model.partial(0.5)
	return model.done()
}

// olmo3 is an olmo2 with windows in all but every fourth layer, and frequencies for each kind.
func olmo3(cfg *config) *decoder {
	model := olmo2Parts(cfg)
	types := layerTypes(cfg, model.layers, func(i int64) bool { return (i+1)%4 != 0 })
	model.attention = model.attn.windows(types, readWindow(cfg, 0))
	model.rotaryDim, model.rotary = 0, typedRotary(model.attn.headDim, types)
	return model.done()
}

// olmo: LayerNorms without weight or bias.
func olmo(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.norm, model.bareNorms, model.normFP32, model.attn.fp32Rotation = modelgraph.LayerNorm, true, true, true
	return model.done()
}

// miniCPM3: DeepSeek's latent attention before a llama's feed-forward; the embedding is scaled.
func miniCPM3(cfg *config) *decoder {
	model := llamaParts(cfg)
	cfg.dividesHidden(model.hidden, model.attn.heads)
	if cfg.null("v_head_dim") {
		cfg.members["v_head_dim"] = jsontext.Value(strconv.FormatInt(max(1, model.hidden/model.attn.heads), 10))
	}
	attn := latentAttention(cfg, model.hidden)
	model.attention = func(int64) part { return attn.part() }
	model.rotaryDim = attn.rope
	model.embedScale, model.embedFactor = true, cfg.number(0, "scale_emb")
	return model.done()
}
