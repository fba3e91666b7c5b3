package hf

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// zamba2Model is modeling_zamba2.py: Mamba-2 in every layer. In hybrid layers, one of
// num_mem_blocks transformer blocks runs before it and reads the hidden state next to the
// embeddings. Hybrid layers share the blocks in turn; each has own adapters in its block.
type zamba2Model struct {
	hidden, inner, rank, blocks int64

	attn          modelgraph.Attention
	mlp           modelgraph.MLP
	mixer         part
	bias, adapted bool
	hybrid        []int64 // layers with a transformer block
	embed         string
}

// zamba2 reads a Zamba2Config.
func zamba2(cfg *config) *decoder {
	hidden, heads := cfg.pos(0, "hidden_size"), cfg.pos(0, "num_attention_heads")
	kinds := zamba2Kinds(cfg)
	model := &zamba2Model{
		hidden: hidden, rank: cfg.pos(0, "adapter_rank"), blocks: cfg.pos(0, "num_mem_blocks"),
		bias: cfg.flag("add_bias_linear"), adapted: cfg.flag("use_shared_attention_adapter"),
	}
	model.inner = 4 * hidden
	if cfg.orZero("intermediate_size") > 0 {
		model.inner = cfg.orZero("intermediate_size")
	}
	wide := cfg.product("hidden_size", 2, hidden)
	width := max(1, wide/heads)
	model.attn = modelgraph.Attention{
		Dim: hidden, InDim: wide, Heads: heads, KVHeads: cfg.optional(heads, "num_key_value_heads"), HeadDim: width,
		Scale: 1 / math.Sqrt(float64(width)/2), Rope: cfg.flag("use_mem_rope"),
	}
	if model.adapted && (heads*width != wide || model.attn.KVHeads != heads) {
		cfg.fail("use_shared_attention_adapter", "adapters are %d wide, as %d heads of %d and %d KV heads are not", wide, heads, width, model.attn.KVHeads)
	}
	cfg.computes("attention_hidden_size", wide)
	cfg.computes("attention_head_dim", width)
	model.mlp = modelgraph.MLP{Dim: hidden, Hidden: model.inner, Gated: true, Fused: true, Activation: cfg.str("gelu", "hidden_act")}
	cfg.members["conv_bias"] = jsontext.Value("true") // use_conv_bias is ignored
	_, model.mixer = chunked(cfg, hidden, mambaFields{
		expand: "mamba_expand", state: "mamba_d_state", kernel: "mamba_d_conv", heads: "n_mamba_heads", groups: "mamba_ngroups", chunk: "chunk_size",
		bias: "add_bias_linear", convBias: "conv_bias",
	})
	for i, kind := range kinds {
		if kind == zamba2Hybrid {
			model.hybrid = append(model.hybrid, int64(i))
		}
	}
	if ids := cfg.dims("hybrid_layer_ids"); cfg.has("hybrid_layer_ids") && !model.among(ids) {
		cfg.fail("hybrid_layer_ids", "%s contradicts layers_block_type, whose hybrid layers are %s: leave it out", tables.InJSON(ids), tables.InJSON(model.hybrid))
	}
	const most = 1000 // each of them has the names of all that share its block
	if len(model.hybrid) > most {
		cfg.fail("layers_block_type", "%d hybrid layers are more than %d", len(model.hybrid), most)
		model.hybrid = nil
	}
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), layers: int64(len(kinds)), norm: modelgraph.RMSNorm,
		names: decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "final_layernorm"},
	}
	if model.attn.Rope {
		d.rotary = rotary(width)
	}
	d.behind = func(modules *builder, _ string) { model.embed = modules.hidden }
	d.custom = func(modules *builder, name string, layer int64) { model.layer(modules, d, name, layer) }
	if cfg.bool(true, "tie_word_embeddings") { // without, Transformers ties nothing at all
		d.ahead = model.share
	}
	return d
}

// among reports ids with each hybrid layer once, at an index for which its block has an adapter
// (Zamba2Attention: num_fwd_mem_blocks, layer_dic).
func (model *zamba2Model) among(ids []int64) bool {
	for at, layer := range model.hybrid {
		if place := slices.Index(ids, layer); place < 0 || model.blocks < 1 || (int64(place)-int64(at))%model.blocks != 0 {
			return false
		}
	}
	return len(ids) == len(model.hybrid) || len(model.hybrid) == 0
}

const zamba2Hybrid = "hybrid"

// zamba2Kinds are the layers' kinds (Zamba2Config: layers_block_type).
func zamba2Kinds(cfg *config) []string {
	count := cfg.count(0, "num_hidden_layers")
	if cfg.has("layers_block_type") {
		kinds := cfg.strs("layers_block_type")
		if int64(len(kinds)) != count {
			cfg.uneven("layers_block_type", len(kinds), count)
		}
		for i, kind := range kinds {
			if now := legacyKinds[kind]; now != "" {
				kinds[i] = now
			}
			if kinds[i] != linearAttention && kinds[i] != zamba2Hybrid {
				cfg.fail("layers_block_type", "%q is neither linear_attention nor hybrid", clipName(kind))
			}
		}
		return kinds
	}
	const standing = 54
	if count != standing {
		cfg.fail("num_hidden_layers", "%d: without layers_block_type there are %d", count, standing)
	}
	kinds := slices.Repeat([]string{linearAttention}, standing)
	for _, i := range []int{6, 12, 18, 24, 30, 36, 42, 47, 51} {
		kinds[i] = zamba2Hybrid
	}
	return kinds
}

// layer is Zamba2HybridLayer, or Zamba2MambaDecoderLayer alone.
func (model *zamba2Model) layer(modules *builder, d *decoder, name string, layer int64) {
	stream := modules.hidden
	at := slices.Index(model.hybrid, layer)
	if at < 0 {
		modules.hidden = model.mamba(modules, d, name, []string{stream}, stream)
		return
	}
	linear := dot(name, "linear")
	modules.add(linear, modelgraph.Linear{In: model.hidden, Out: model.hidden}, []string{dot(name, "shared_transformer.feed_forward")}, linearParams("", model.hidden, model.hidden, false)...)
	modules.hidden = model.mamba(modules, d, dot(name, "mamba_decoder"), []string{linear, stream}, stream)
	model.transformer(modules, dot(name, "shared_transformer"), stream, int64(at))
}

// mamba is a mixer after a norm, added to the stream without the transformer's result.
func (model *zamba2Model) mamba(modules *builder, d *decoder, name string, reads []string, stream string) string {
	norm, mixer := dot(name, "input_layernorm"), dot(name, "mamba")
	modules.add(mixer, model.mixer.op, []string{norm, stream}, slices.Clone(model.mixer.params)...)
	modules.add(norm, d.normOp(false), reads, normParams("", model.hidden, false)...)
	return mixer
}

// transformer is Zamba2AttentionDecoderLayer of hybrid layer number at, without residuals.
func (model *zamba2Model) transformer(modules *builder, name, stream string, at int64) {
	wide := model.attn.InDim
	attn, ffn := dot(name, "self_attn"), dot(name, "feed_forward")
	before, between := dot(name, "input_layernorm"), dot(name, "pre_ff_layernorm")
	reads := []string{before}
	if model.adapted {
		for _, of := range []string{"q", "k", "v"} {
			reads = append(reads, dot(attn, "linear_"+of+"_adapter_list", strconv.FormatInt(at, 10), "1"))
		}
	}
	modules.add(attn, model.attn, reads, modelgraph.Params(model.attn, nil)...)
	if model.adapted {
		for _, of := range []string{"q", "k", "v"} {
			model.adapters(modules, dot(attn, "linear_"+of+"_adapter_list"), before, wide, wide, at)
		}
	}
	modules.add(ffn, model.mlp, []string{between, dot(ffn, "gate_up_proj_adapter_list", strconv.FormatInt(at, 10), "1")},
		modelgraph.Params(model.mlp, func(string) bool { return model.bias })...)
	model.adapters(modules, dot(ffn, "gate_up_proj_adapter_list"), between, model.hidden, 2*model.inner, at)
	modules.add(before, modelgraph.Norm{Dim: wide, Style: modelgraph.RMSNorm}, []string{stream, model.embed}, normParams("", wide, false)...)
	modules.add(between, modelgraph.Norm{Dim: model.hidden, Style: modelgraph.RMSNorm}, []string{attn}, normParams("", model.hidden, false)...)
}

// adapters are the adapters of all hybrid layers that share the block; the layer's own run.
func (model *zamba2Model) adapters(modules *builder, name, reads string, in, out, at int64) {
	for i := at % model.blocks; i < int64(len(model.hybrid)); i += model.blocks {
		down, up := dot(indexed(name, i), "0"), dot(indexed(name, i), "1")
		if i != at {
			modules.add(down, modelgraph.Parameter{}, nil, linearParams("", in, model.rank, false)...)
			modules.add(up, modelgraph.Parameter{}, nil, linearParams("", model.rank, out, false)...)
			continue
		}
		modules.add(down, modelgraph.Linear{In: in, Out: model.rank}, []string{reads}, linearParams("", in, model.rank, false)...)
		modules.add(up, modelgraph.Linear{In: model.rank, Out: out}, []string{down}, linearParams("", model.rank, out, false)...)
	}
}

// share ties every block's tensors to the block's first layer (Zamba2Model.get_layers).
func (model *zamba2Model) share(modules *builder, path string) {
	block := func(at int64) string {
		return dot(indexed(dot(path, "layers"), model.hybrid[at]), "shared_transformer") + "."
	}
	count := int64(len(model.hybrid))
	for at := range min(count, model.blocks) {
		if at+model.blocks >= count {
			continue
		}
		first := block(at)
		for _, layer := range slices.Clone(modules.layers) {
			below, there := strings.CutPrefix(layer.Name, first)
			if !there {
				continue
			}
			for _, param := range layer.Params {
				names := []string{dot(layer.Name, param.Name)}
				for other := at + model.blocks; other < count; other += model.blocks {
					names = append(names, dot(block(other)+below, param.Name))
				}
				modules.tie(names...)
			}
		}
	}
}
