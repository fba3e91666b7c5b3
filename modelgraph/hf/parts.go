package hf

import "github.com/devmap-dev/devmap/modelgraph"

// parts are a decoder's parts by a filled config. A reader changes some and calls done last.
type parts struct {
	*decoder
	cfg  *config
	attn attention
	mlp  feedForward
	// rotaryDim is the width that turns; 0: nothing does.
	rotaryDim int64
}

// llamaParts reads a llama's parts from a filled config: fields that its class lacks are absent.
func llamaParts(cfg *config) *parts {
	hidden := cfg.pos(0, "hidden_size")
	model := &parts{cfg: cfg, decoder: &decoder{hidden: hidden, norm: modelgraph.RMSNorm}}
	model.attn = groupedAttention(cfg, hidden, headDefaults{})
	model.attn.bias = cfg.on("attention_bias")
	model.attn.outBias = model.attn.bias
	model.mlp = feedForward{dim: hidden}
	if cfg.classHas("intermediate_size") {
		model.mlp.hidden = cfg.pos(0, "intermediate_size")
	}
	model.mlp.activation, model.mlp.bias = cfg.str("silu", "hidden_act"), cfg.on("mlp_bias")
	model.vocab, model.layers = cfg.pos(0, "vocab_size"), cfg.count(0, "num_hidden_layers")
	model.rotaryDim = model.attn.headDim
	return model
}

// runningParts are parts of a family that runs: it also reads the layers' operations.
func runningParts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.attn.rotation = cfg.rotation(model.attn.headDim, 0)
	model.epsilon, model.padding = cfg.number(0, "rms_norm_eps"), cfg.padding(0, model.vocab)
	return model
}

// on is a switch that the config's class has, on.
func (cfg *config) on(name string) bool { return cfg.classHas(name) && cfg.flag(name) }

// done is the decoder of the parts.
func (model *parts) done() *decoder {
	if model.rotaryDim > 0 && model.rotaryDim < model.attn.headDim {
		model.attn.turning = model.rotaryDim
	}
	for _, name := range []string{"attention_dropout", "attn_pdrop"} {
		model.attn.innerDropout = model.attn.innerDropout || model.cfg.classHas(name) && !model.cfg.isNull(name) && model.cfg.float(0, name) > 0
	}
	if model.attention == nil {
		model.attention = func(int64) part { return model.attn.part() }
	}
	if model.ffn == nil {
		model.ffn = func(int64) part { return model.mlp.part() }
	}
	if model.rotaryDim > 0 {
		model.rotary = rotary(model.rotaryDim)
	}
	return model.decoder
}

// dropped is a dropout after attention and after the feed-forward, by the named field.
func (model *parts) dropped(standard float64, name string) {
	drops := model.cfg.float(standard, name) > 0
	model.attn.dropout, model.mlp.dropout = drops, drops
}

// layerNorms are torch.nn.LayerNorm, with biases.
func (model *parts) layerNorms() { model.norm, model.normBias = modelgraph.LayerNorm, true }

// partial is the part of a head that turns: partial_rotary_factor among the RoPE parameters or next
// to them, or the type's own.
func (model *parts) partial(share float64) {
	model.rotaryDim = model.partialOf(model.attn.headDim, share, "partial_rotary_factor")
}

func (model *parts) partialOf(width int64, share float64, name string) int64 {
	rope := model.cfg.sub(model.cfg.pick([]string{"rope_scaling", "rope_parameters"}))
	if model.cfg.has(name) {
		share = model.cfg.float(share, name)
	}
	share = rope.float(share, "partial_rotary_factor")
	if !(share > 0 && share <= 1) {
		model.cfg.fail(name, "%v is not a share (more than 0, 1 at most)", share)
		return width
	}
	return int64(float64(width) * share)
}

// sliding gives the layers their windows: by layer_types, else by slides.
func (model *parts) sliding(width int64, slides func(layer int64) bool) {
	model.attention = model.attn.windows(layerTypes(model.cfg, model.layers, slides), width)
}

// sparse has experts in the layers that route tokens, and a feed-forward in the others.
func (model *parts) sparse(routes func(layer int64) bool, experts func() part) {
	model.ffn = func(i int64) part {
		if routes(i) {
			return experts()
		}
		return model.mlp.part()
	}
}
