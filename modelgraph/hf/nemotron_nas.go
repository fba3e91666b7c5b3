package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types:   []string{"nemotron-nas"},
		class:   "DeciLMForCausalLM",
		classes: causalClasses("DeciLM", sequenceClassification, tokenClassification, questionAnswering),
		build: func(modules *builder, cfg *config, class string) {
			nemotronNAS(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// nemotronNAS reads a DeciLMConfig (NVIDIA's configuration_decilm.py and block_config.py, in the
// checkpoint): a llama whose layers were searched one by one. Some layers do nothing.
func nemotronNAS(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	heads := cfg.pos(32, "num_attention_heads")
	cfg.dividesHidden(hidden, heads)
	blocks := deciBlocks(cfg, hidden, heads)
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(32000, "vocab_size"), layers: int64(len(blocks)),
		norm:   modelgraph.RMSNorm,
		rotary: modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: hidden / heads}, Buffers: deciFrequencies("", hidden/heads)},
	}
	d.custom = func(modules *builder, name string, i int64) { d.deci(modules, name, blocks[i]) }
	return d
}

// deciBlock is a decoder layer; a part without an op is not there.
type deciBlock struct{ attention, ffn part }

// deciBlocks reads block_configs, one entry a layer.
func deciBlocks(cfg *config, hidden, heads int64) []deciBlock {
	entries := cfg.objects("block_configs")
	layers := cfg.count(32, "num_hidden_layers")
	if int64(len(entries)) != layers {
		cfg.uneven("block_configs", len(entries), layers)
		return nil
	}
	blocks := make([]deciBlock, layers)
	for i, entry := range entries {
		blocks[i] = deciBlock{
			attention: deciAttention(cfg, entry.sub("attention"), hidden, heads),
			ffn:       deciFFN(cfg, entry.sub("ffn"), hidden),
		}
	}
	return blocks
}

// deci adds one decoder layer, each norm before its part (modeling_decilm.py: DeciLMDecoderLayer).
// A layer without parts passes the hidden state on; it is a module and needs a device.
func (d *decoder) deci(modules *builder, name string, block deciBlock) {
	if block.attention.op == nil && block.ffn.op == nil {
		modules.add(name, modelgraph.Opaque{}, []string{modules.hidden})
		return
	}
	for _, s := range []struct {
		norm, name string
		part       part
	}{{"input_layernorm", "self_attn", block.attention}, {"post_attention_layernorm", "mlp", block.ffn}} {
		if s.part.op == nil {
			continue
		}
		d.addNorm(modules, dot(name, s.norm), false, modules.hidden, "")
		d.add(modules, dot(name, s.name), s.part, dot(name, s.norm), modules.hidden)
		modules.hidden = dot(name, s.name)
	}
}

// deciAttention is DeciLMAttention, with frequencies in every layer, or the single matrix of
// DeciLMLinearAttention. Only sinks, which no kernel supports, make it eager; flash attention is
// used if installed.
func deciAttention(cfg, a *config, hidden, heads int64) part {
	switch {
	case a.bool(false, "no_op"):
		return part{}
	case a.bool(false, "replace_with_linear"):
		return part{op: modelgraph.Linear{In: hidden, Out: hidden}, params: linearParams("linear_attn", hidden, hidden, false)}
	case a.has("mamba") || a.has("llama4"):
		a.fail("", "a block that is not attention is not known here")
	}
	bias := cfg.bool(false, "attention_bias")
	p := attention{
		dim: hidden, heads: heads, kvHeads: deciKVHeads(a, heads), headDim: hidden / heads, window: deciWindow(a),
		bias: bias, outBias: bias, eager: a.bool(false, "unshifted_sink"),
	}.part()
	p.buffers = deciFrequencies("rotary_emb", hidden/heads)
	return p
}

// deciKVHeads is heads / n_heads_in_group; configs since Puzzle's release may have the KV heads.
func deciKVHeads(cfg *config, heads int64) int64 {
	if cfg.has("num_key_value_heads") {
		kv := cfg.pos(1, "num_key_value_heads")
		if heads%kv != 0 {
			cfg.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", kv, heads)
		}
		return kv
	}
	if !cfg.has("n_heads_in_group") {
		cfg.fail("n_heads_in_group", "attention that is neither no_op nor linear needs it")
	}
	group := cfg.pos(1, "n_heads_in_group")
	if heads%group != 0 {
		cfg.fail("n_heads_in_group", "%d does not divide num_attention_heads %d", group, heads)
	}
	return max(1, heads/group)
}

// deciWindow is the window of the whole sequence's pass (block_config.py: prefill_sliding_window);
// with sinks there is none unless asked for.
func deciWindow(cfg *config) int64 {
	if cfg.has("num_sink_tokens") && !cfg.bool(false, "use_prefill_window_in_sink_attention") {
		return 0
	}
	if cfg.null("window_length") {
		return 0
	}
	return cfg.dim(0, "window_length")
}

// deciFFN is DeciLMMLP or the single matrix of DeciLMLinearMLP.
func deciFFN(cfg, f *config, hidden int64) part {
	switch {
	case f.bool(false, "no_op"):
		return part{}
	case f.bool(false, "replace_with_linear"):
		return part{op: modelgraph.Linear{In: hidden, Out: hidden}, params: linearParams("linear_mlp", hidden, hidden, false)}
	case f.has("moe"):
		f.fail("moe", "experts in a nemotron-nas block are not known here")
	}
	return feedForward{
		dim: hidden, hidden: deciWidth(f, hidden), bias: cfg.bool(false, "mlp_bias"),
		activation: f.str(cfg.str("silu", "hidden_act"), "hidden_act"),
	}.part()
}

// deciWidth is two thirds of ffn_mult hidden sizes, rounded up to 256 (modeling_decilm.py:
// _ffn_mult_to_intermediate_size), or intermediate_size if a newer config gives that.
func deciWidth(cfg *config, hidden int64) int64 {
	if cfg.has("intermediate_size") {
		return cfg.pos(1, "intermediate_size")
	}
	mult := math.Round(cfg.float(0, "ffn_mult")*1e6) / 1e6
	width := math.Trunc(2 * mult * float64(hidden) / 3)
	if !(width >= 1 && width <= maxDim) {
		cfg.fail("ffn_mult", "%v makes no width for a hidden size of %d", mult, hidden)
		return 1
	}
	return (int64(width) + 255) / 256 * 256
}

// deciFrequencies is the buffer of a DeciLMRotaryEmbedding; it keeps no second copy.
func deciFrequencies(path string, headDim int64) []modelgraph.Tensor {
	return []modelgraph.Tensor{buffer(dot(path, "inv_freq"), modelgraph.F32, (headDim+1)/2)}
}
