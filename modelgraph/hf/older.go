package hf

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// This file has decoders older than Llama: LayerNorms, ungated feed-forwards, other names of sizes.

// olderFields are a config's names for its sizes.
type olderFields struct{ hidden, heads, layers, inner string }

// gptFields are the fields of GPT-2's descendants.
var gptFields = olderFields{hidden: "n_embd", heads: "n_head", layers: "n_layer", inner: "n_inner"}

// olderParts are LayerNorms, as many KV heads as heads, and by default a feed-forward four times as
// wide.
func olderParts(cfg *config, fields olderFields) *parts {
	hidden := cfg.pos(0, fields.hidden)
	heads := equalHeads(cfg, hidden, 0, fields.heads)
	model := &parts{cfg: cfg, decoder: &decoder{hidden: hidden, classifier: true}}
	model.layerNorms()
	model.attn = attention{dim: hidden, heads: heads.Heads, kvHeads: heads.KVHeads, headDim: heads.HeadDim}
	model.mlp = feedForward{dim: hidden, hidden: cfg.product(fields.hidden, 4, hidden), bias: true}
	if fields.inner != "" {
		model.mlp.hidden = cfg.optional(model.mlp.hidden, fields.inner)
		model.mlp.activation = cfg.str("", "activation_function")
	}
	model.vocab, model.layers = cfg.pos(0, "vocab_size"), cfg.count(0, fields.layers)
	return model
}

// gptBlock is GPT-2's (modeling_gpt2.py: GPT2Block).
var gptBlock = blockForm{attnNorm: "ln_1", attn: "attn", ffnNorm: "ln_2", ffn: "mlp", order: []string{"ln_1", "attn", "ln_2", "mlp"}}

// gptJ: one norm before attention and feed-forward, which run next to each other, and in every
// layer the sines and cosines of all positions (modeling_gptj.py).
func gptJ(cfg *config) *decoder {
	model := turningGPT(cfg)
	model.attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "out_proj", keysFirst: true}
	model.labelled = true
	return model.done()
}

func turningGPT(cfg *config) *parts {
	model := olderParts(cfg, gptFields)
	model.form = blockForm{attnNorm: "ln_1", attn: "attn", ffn: "mlp", parallel: true, order: []string{"ln_1", "attn", "mlp"}}
	model.names = decoderNames{base: "transformer", embed: "wte", layers: "h", norm: "ln_f"}
	model.mlp.up, model.mlp.down, model.headBias = "fc_in", "fc_out", true
	model.attn.eager, model.attn.fp32Scores = !cfg.since("5.24"), !cfg.since("5.24") // _supports_sdpa
	width := cfg.dim(0, "rotary_dim")
	if width < model.attn.headDim {
		model.attn.turning = width
	}
	if width == 0 {
		width = model.hidden // one table for all heads
	}
	table := []modelgraph.Tensor{buffer("embed_positions", modelgraph.F32, cfg.pos(0, "n_positions"), (width+1)/2*2)}
	if cfg.since("5.24") { // one for all layers
		model.rotary, table = modelgraph.Layer{Op: modelgraph.Parameter{}, Buffers: table}, nil
	}
	model.attention = func(int64) part {
		p := model.attn.part()
		p.buffers = table
		return p
	}
	model.behind = func(modules *builder, path string) { modules.empty(dot(path, "drop")) }
	return model
}

// gptNeo: windows in the layers that attention_types calls local, scores that are not scaled, and
// in every layer a mask of all positions (modeling_gpt_neo.py).
func gptNeo(cfg *config) *decoder {
	model := olderParts(cfg, olderFields{hidden: "hidden_size", heads: "num_heads", layers: "num_layers", inner: "intermediate_size"})
	model.form = gptBlock
	model.form.attn, model.form.order = "attn.attention", []string{"ln_1", "attn.attention", "ln_2", "mlp"}
	model.names = decoderNames{base: "transformer", embed: "wte", layers: "h", norm: "ln_f"}
	model.mlp.up, model.mlp.down = "c_fc", "c_proj"
	model.attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "out_proj", keysFirst: true}
	model.attn.outBias, model.attn.unturned, model.attn.scale = true, true, 1
	model.attn.eager, model.attn.fp32Scores = true, true
	positions, kinds, window := cfg.pos(0, "max_position_embeddings"), neoKinds(cfg, model.layers), cfg.pos(0, "window_size")
	cfg.product("max_position_embeddings", positions, positions)
	mask := buffer("bias", boolType, 1, 1, positions, positions)
	model.attention = func(i int64) part {
		at := model.attn
		if kinds[i] == "local" {
			at.window = window
		}
		p := at.part()
		p.buffers = []modelgraph.Tensor{mask}
		return p
	}
	behind := model.placesBehind(positions)
	model.behind = func(modules *builder, path string) {
		from := len(modules.layers)
		behind(modules, path)
		modules.join(from, dot(path, "wte")) // GPTNeoModel.forward adds their rows
	}
	return model.done()
}

// placesBehind adds a table of positions, and the dropout after it.
func (model *parts) placesBehind(positions int64) func(modules *builder, path string) {
	return func(modules *builder, path string) {
		places := modelgraph.Embedding{Vocab: positions, Dim: model.hidden, Index: modelgraph.PositionIndex, Persists: true}
		modules.hidden = addRows(modules, dot(path, "wpe"), places, modules.hidden)
		modules.empty(dot(path, "drop"))
	}
}

// neoKinds are the layers' kinds, by attention_types: lists of kinds with a count.
func neoKinds(cfg *config, layers int64) []string {
	const name = "attention_types"
	kinds := make([]string, 0, layers)
	groups := cfg.arrays(name)
	if !cfg.has(name) {
		kinds = slices.Repeat([]string{"global", "local"}, 12)
	}
	for i, group := range groups {
		var names []string
		var times int64
		if len(group) != 2 || json.Unmarshal(group[0], &names) != nil || json.Unmarshal(group[1], &times) != nil || times < 0 || times > maxLayers {
			cfg.fail(fmt.Sprintf("%s[%d]", name, i), "it is not a list of kinds and how often they stand there")
			return make([]string, layers)
		}
		if int64(len(kinds))+times*int64(len(names)) > maxLayers {
			cfg.fail(name, "more than %d layers", maxLayers)
			return make([]string, layers)
		}
		kinds = append(kinds, slices.Repeat(names, int(times))...)
	}
	for _, kind := range kinds {
		if kind != "global" && kind != "local" {
			cfg.fail(name, "%q is neither global nor local", clipName(kind))
		}
	}
	if int64(len(kinds)) != layers {
		cfg.fail(name, "%d layers, and num_layers is %d", len(kinds), layers)
		return make([]string, layers)
	}
	return kinds
}

// gptBigCode: one matrix for q, k and v; one KV head if multi_query (modeling_gpt_bigcode.py).
func gptBigCode(cfg *config) *decoder {
	model := olderParts(cfg, gptFields)
	if cfg.flag("add_cross_attention") {
		cfg.fail("add_cross_attention", "layers that read an encoder are not known here")
	}
	model.form = gptBlock
	model.names = decoderNames{base: "transformer", embed: "wte", layers: "h", norm: "ln_f"}
	model.mlp.up, model.mlp.down = "c_fc", "c_proj"
	model.attn.names = attentionNames{fused: "c_attn", out: "c_proj"}
	model.mlp.more = 1 // attn_outputs
	model.attn.bias, model.attn.outBias, model.attn.unturned = true, true, true
	model.dropped(0.1, "resid_pdrop")
	if cfg.bool(true, "multi_query") {
		model.attn.kvHeads = 1
	}
	if !cfg.bool(true, "scale_attn_weights") {
		model.attn.scale = 1
	}
	positions := cfg.pos(0, "n_positions")
	cfg.product("n_positions", positions, positions)
	places := model.placesBehind(positions)
	model.behind = func(modules *builder, path string) {
		places(modules, path)
		modules.add(dot(path, "bias"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{buffer("", boolType, positions, positions)}
	}
	return model.done()
}

// dbrx: LayerNorms without bias, experts whose matrices are stacked by rows (modeling_dbrx.py).
func dbrx(cfg *config) *decoder {
	model := olderParts(cfg, olderFields{hidden: "d_model", heads: "n_heads", layers: "n_layers"})
	model.normBias = false
	model.names = decoderNames{base: "transformer", embed: "wte", layers: "blocks", norm: "norm_f"}
	model.form = blockForm{
		attnNorm: "norm_attn_norm.norm_1", attn: "norm_attn_norm.attn", ffnNorm: "norm_attn_norm.norm_2", ffn: "ffn",
		order: []string{"norm_attn_norm.norm_1", "norm_attn_norm.attn", "norm_attn_norm.norm_2", "ffn"},
	}
	model.attn.names = attentionNames{fused: "Wqkv", out: "out_proj"}
	attn, ffn := cfg.sub("attn_config"), cfg.sub("ffn_config")
	model.attn.kvHeads = attn.pos(1, "kv_n_heads")
	if model.attn.heads%model.attn.kvHeads != 0 {
		attn.fail("kv_n_heads", "%d does not divide n_heads %d", model.attn.kvHeads, model.attn.heads)
	}
	if cfg.flag("tie_word_embeddings") {
		cfg.fail("tie_word_embeddings", "a dbrx has a head of its own")
	}
	experts := moe{
		castWeights: true, dim: model.hidden, hidden: ffn.pos(3584, "ffn_hidden_size"), experts: ffn.pos(4, "moe_num_experts"), topK: ffn.pos(1, "moe_top_k"),
		activation: ffn.sub("ffn_act_fn").str("silu", "name"),
	}
	if experts.topK > experts.experts {
		ffn.fail("moe_top_k", "a token cannot go to %d of %d experts", experts.topK, experts.experts)
	}
	rows := ffn.product("moe_num_experts", experts.experts, experts.hidden)
	mixture := part{op: experts.op(), params: []modelgraph.Tensor{
		tensor("router.layer.weight", experts.experts, model.hidden),
		tensor("experts.mlp.w1", rows, model.hidden), tensor("experts.mlp.v1", rows, model.hidden), tensor("experts.mlp.w2", rows, model.hidden),
	}}
	model.ffn = func(int64) part { return mixture }
	model.rotaryDim = model.attn.headDim
	return model.done()
}
