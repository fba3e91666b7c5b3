package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// lfm2: a gated convolution in the layers that do not attend (modeling_lfm2.py: Lfm2ShortConv).
func lfm2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.names = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "embedding_norm"}
	model.attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "out_proj"}
	model.attn.normed("q_layernorm", "k_layernorm", modelgraph.RMSNorm, false)
	model.mlp.hidden = lfm2Width(cfg)
	bias, kernel := cfg.flag("conv_bias"), cfg.pos(0, "conv_L_cache")
	conv := part{
		op:     modelgraph.StateSpace{Dim: model.hidden, Inner: model.hidden, Kernel: kernel, Heads: model.hidden},
		params: []modelgraph.Tensor{tensor("conv.weight", model.hidden, 1, kernel)},
	}
	if bias {
		conv.params = append(conv.params, tensor("conv.bias", model.hidden))
	}
	conv.params = join(conv.params, linearParams("in_proj", model.hidden, 3*model.hidden, bias), linearParams("out_proj", model.hidden, model.hidden, bias))
	attends := cfg.dims("full_attn_idxs")
	if cfg.has("tie_embedding") { // sets the other
		cfg.members["tie_word_embeddings"] = cfg.members["tie_embedding"]
	}
	types := kindsOf(cfg, model.layers, []string{fullAttention, "conv"}, func(i int64) string {
		if !cfg.has("full_attn_idxs") || slices.Contains(attends, i) {
			return fullAttention
		}
		return "conv"
	})
	model.ffn = func(int64) part {
		p := model.mlp.part()
		p.params = join(linearParams("w1", model.hidden, model.mlp.hidden, false), linearParams("w3", model.hidden, model.mlp.hidden, false),
			linearParams("w2", model.mlp.hidden, model.hidden, false))
		return p
	}
	model.mixed(func(i int64) bool { return types[i] == fullAttention }, conv, blockForm{
		attnNorm: "operator_norm", attn: "conv", ffnNorm: "ffn_norm", ffn: "feed_forward", order: []string{"conv", "feed_forward", "operator_norm", "ffn_norm"},
	})
	return model.done()
}

// lfm2Width is the feed-forward's: two thirds of the config's width, rounded up to a multiple,
// unless block_auto_adjust_ff_dim is off (modeling_lfm2.py: Lfm2MLP).
func lfm2Width(cfg *config) int64 {
	width := cfg.pos(0, "intermediate_size")
	if cfg.has("block_ff_dim") { // sets the other
		width = cfg.pos(0, "block_ff_dim")
	}
	if !cfg.bool(true, "block_auto_adjust_ff_dim") {
		return width
	}
	width = 2 * width / 3
	if !cfg.has("block_ffn_dim_multiplier") {
		return width
	}
	multiple, factor := cfg.pos(0, "block_multiple_of"), cfg.float(1, "block_ffn_dim_multiplier")
	wide := factor * float64(width)
	if !(wide >= 0 && wide <= maxDim) {
		cfg.fail("block_ffn_dim_multiplier", "%v makes no width of %d", factor, width)
		return 1
	}
	width = (int64(wide) + multiple - 1) / multiple * multiple
	if width == 0 {
		cfg.fail("block_ffn_dim_multiplier", "%v leaves no width", factor)
		return 1
	}
	return width
}
