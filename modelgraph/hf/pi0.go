package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"openpi_pi0", "openpi_pi05"}, class: "Pi0", classes: []string{"Pi0"},
		build:  func(modules *builder, cfg *config, _ string) { readPi0(cfg).build(modules) },
		maxSeq: func(cfg *config) int64 { return readPi0(cfg).words },
		unread: []string{"discrete_state_input", "pytorch_compile_mode"},
	})
}

// pi0 is a Pi0Config of OpenPI (Physical-Intelligence/openpi at 15a9616, models/pi0_config.py) as a
// config.json. It has that class's fields, and a model_type of ours, since Transformers' pi0 has
// another module tree. The arrays are the JAX model's, named by their path in nnx.state and joined
// with dots. Blocks are scanned, so one array has all blocks, stacked along its first axis. Arrays
// that get_freeze_filter names are frozen, and bf16 as scripts/train.py makes them.
type pi0 struct {
	adaptive              bool // pi0.5: the expert's norms follow the time, and the state is text
	experts               [2]gemmaExpert
	actions, steps, words int64
}

// gemmaExpert is a Config of models/gemma.py. Rank 0 is one without adapters.
type gemmaExpert struct{ width, depth, hidden, heads, kvHeads, headDim, rank int64 }

// gemmaExperts are the variants of gemma.py's get_config.
var gemmaExperts = map[string]gemmaExpert{
	"dummy":           {64, 4, 128, 8, 1, 16, 0},
	"gemma_300m":      {1024, 18, 4096, 8, 1, 256, 0},
	"gemma_300m_lora": {1024, 18, 4096, 8, 1, 256, 32},
	"gemma_2b":        {2048, 18, 16_384, 8, 1, 256, 0},
	"gemma_2b_lora":   {2048, 18, 16_384, 8, 1, 256, 16},
}

// The vocabulary is PALIGEMMA_VOCAB_SIZE (gemma.py). The tower is SigLIP So400m/14 (siglip.py,
// decode_variant). There are three images (model.py: IMAGE_KEYS, IMAGE_RESOLUTION) of 224 pixels.
const (
	pi0Vocab  = 257_152
	pi0Images = 3
	pi0Patch  = 14
	pi0Side   = 224
)

var pi0Tower = struct{ width, depth, hidden, heads, tokens int64 }{1152, 27, 4304, 16, (pi0Side / pi0Patch) * (pi0Side / pi0Patch)}

func readPi0(cfg *config) *pi0 {
	model := &pi0{adaptive: cfg.bool(cfg.name("model_type") == "openpi_pi05", "pi05")}
	if model.adaptive != (cfg.name("model_type") == "openpi_pi05") {
		cfg.fail("pi05", "%v contradicts the model_type %q", model.adaptive, cfg.name("model_type"))
	}
	words := int64(48)
	if model.adaptive {
		words = 200
	}
	model.actions, model.steps = cfg.pos(32, "action_dim"), cfg.pos(50, "action_horizon")
	model.words = cfg.optional(words, "max_token_len")
	for i, name := range []string{"paligemma_variant", "action_expert_variant"} {
		variant := cfg.str([]string{"gemma_2b", "gemma_300m"}[i], name)
		expert, ok := gemmaExperts[variant]
		if !ok {
			cfg.fail(name, "%q is no variant of OpenPI's gemma.py (known: %s)", clipName(variant), strings.Join(slices.Sorted(maps.Keys(gemmaExperts)), ", "))
		}
		model.experts[i] = expert
	}
	if one, two := model.experts[0], model.experts[1]; one.depth != two.depth || one.heads != two.heads || one.kvHeads != two.kvHeads || one.headDim != two.headDim {
		cfg.fail("action_expert_variant", "its depth, heads or their width differ from the paligemma_variant's, with which it shares attention")
	}
	return model
}

// build adds the arrays. The memory that a step keeps depends on the whole program, not on layers.
func (model *pi0) build(modules *builder) {
	modules.on(modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: pi0Images * pi0Tower.tokens}, func() {
		modules.unit("PaliGemma.img", func() { model.tower(modules) })
	})
	modules.unit("PaliGemma.llm", func() { model.gemma(modules) })
	expert := model.experts[1].width
	dense := func(name string, in, out int64) { arrays(modules, name, denseArrays("", nil, in, out)...) }
	modules.on(modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: model.suffix()}, func() {
		if model.adaptive {
			dense("time_mlp_in", expert, expert)
			dense("time_mlp_out", expert, expert)
		} else {
			dense("state_proj", model.actions, expert)
			dense("action_time_mlp_in", 2*expert, expert)
			dense("action_time_mlp_out", expert, expert)
		}
		dense("action_in_proj", model.actions, expert)
		dense("action_out_proj", expert, model.actions)
	})
}

// suffix is the expert's tokens: the actions, and pi0's state (pi0.py, embed_suffix).
func (model *pi0) suffix() int64 {
	if model.adaptive {
		return model.steps
	}
	return model.steps + 1
}

// tower adds SigLIP (siglip.py: _Module, Encoder, Encoder1DBlock), with a head to the text's width.
func (model *pi0) tower(modules *builder) {
	const img = "PaliGemma.img"
	width, stack := pi0Tower.width, []int64{pi0Tower.depth}
	arrays(modules, img+".embedding", array("kernel", pi0Patch, pi0Patch, 3, width), array("bias", width))
	arrays(modules, img+".pos_embedding", array("", 1, pi0Tower.tokens, width))
	heads := []int64{pi0Tower.heads, width / pi0Tower.heads}
	block := join(normArrays("LayerNorm_0", stack, width), normArrays("LayerNorm_1", stack, width),
		denseArrays("MlpBlock_0.Dense_0", stack, width, pi0Tower.hidden), denseArrays("MlpBlock_0.Dense_1", stack, pi0Tower.hidden, width))
	for _, name := range []string{"key", "query", "value"} {
		block = append(block, array("MultiHeadDotProductAttention_0."+name+".kernel", slices.Concat(stack, []int64{width}, heads)...),
			array("MultiHeadDotProductAttention_0."+name+".bias", slices.Concat(stack, heads)...))
	}
	block = append(block, array("MultiHeadDotProductAttention_0.out.kernel", slices.Concat(stack, heads, []int64{width})...),
		array("MultiHeadDotProductAttention_0.out.bias", slices.Concat(stack, []int64{width})...))
	arrays(modules, img+".Transformer.encoderblock", block...)
	arrays(modules, img+".Transformer.encoder_norm", normArrays("", nil, width)...)
	arrays(modules, img+".head", denseArrays("", nil, width, model.experts[0].width)...)
}

// gemma adds both experts (gemma.py: Module, Block, Attention, lora.py: FeedForward) as one stack.
func (model *pi0) gemma(modules *builder) {
	const llm = "PaliGemma.llm"
	stack := []int64{model.experts[0].depth}
	var block, final []modelgraph.Tensor
	for i := range model.experts {
		expert, end := &model.experts[i], []string{"", "_1"}[i]
		adaptive := model.adaptive && i == 1
		block = slices.Concat(block, expert.attention(end, stack), expert.mlp(end, stack),
			scaleArrays("pre_attention_norm"+end, adaptive, stack, expert.width), scaleArrays("pre_ffw_norm"+end, adaptive, stack, expert.width))
		final = append(final, scaleArrays("final_norm"+end, adaptive, nil, expert.width)...)
	}
	block = append([]modelgraph.Tensor{array("embedder.input_embedding", pi0Vocab, model.experts[0].width)}, append(block, final...)...)
	model.freeze(block)
	cut := slices.IndexFunc(block, func(tensor modelgraph.Tensor) bool { return strings.HasPrefix(tensor.Name, "final_norm") })
	arrays(modules, llm+".embedder", renamed(block[:1], "embedder.")...)
	arrays(modules, llm+".layers", block[1:cut]...)
	arrays(modules, llm, block[cut:]...)
}

// freeze is get_freeze_filter (pi0_config.py) on the arrays of llm: the weights of an expert with
// adapters, without these. ".*llm.*" matches both experts, ".*llm.*_1.*" the second alone.
func (model *pi0) freeze(tensors []modelgraph.Tensor) {
	for i := range tensors {
		second := strings.Contains(tensors[i].Name, "_1")
		frozen := model.experts[0].rank > 0 && (!second || model.experts[1].rank > 0) || model.experts[0].rank == 0 && model.experts[1].rank > 0 && second
		if frozen && !strings.Contains(tensors[i].Name, "lora") {
			tensors[i].Frozen, tensors[i].DType = true, modelgraph.BF16
		}
	}
}

// attention are an expert's projections (lora.py: Einsum, whose adapters replace the last two
// axes).
func (expert *gemmaExpert) attention(end string, stack []int64) []modelgraph.Tensor {
	var out []modelgraph.Tensor
	add := func(name string, shape ...int64) {
		name, shape = "attn."+name+end, slices.Concat(stack, shape)
		out = append(out, array(name+".w", shape...))
		if last := len(shape) - 1; expert.rank > 0 {
			low, high := slices.Clone(shape), slices.Clone(shape)
			low[last], high[last-1] = expert.rank, expert.rank
			out = append(out, array(name+".lora_a", low...), array(name+".lora_b", high...))
		}
	}
	if expert.kvHeads == expert.heads {
		add("qkv_einsum", 3, expert.heads, expert.width, expert.headDim)
	} else {
		add("q_einsum", expert.heads, expert.width, expert.headDim)
		add("kv_einsum", 2, expert.kvHeads, expert.width, expert.headDim)
	}
	add("attn_vec_einsum", expert.heads, expert.headDim, expert.width)
	return out
}

// mlp is lora.py's FeedForward.
func (expert *gemmaExpert) mlp(end string, stack []int64) []modelgraph.Tensor {
	name := "mlp" + end + "."
	out := []modelgraph.Tensor{
		array(name+"gating_einsum", slices.Concat(stack, []int64{2, expert.width, expert.hidden})...),
		array(name+"linear", slices.Concat(stack, []int64{expert.hidden, expert.width})...),
	}
	if expert.rank > 0 {
		out = append(out,
			array(name+"gating_einsum_lora_a", slices.Concat(stack, []int64{2, expert.width, expert.rank})...),
			array(name+"gating_einsum_lora_b", slices.Concat(stack, []int64{2, expert.rank, expert.hidden})...),
			array(name+"linear_lora_a", slices.Concat(stack, []int64{expert.hidden, expert.rank})...),
			array(name+"linear_lora_b", slices.Concat(stack, []int64{expert.rank, expert.width})...))
	}
	return out
}

// scaleArrays is a norm of gemma.py (RMSNorm): a scale, or scale, shift and gate by a Dense of the
// time.
func scaleArrays(name string, adaptive bool, stack []int64, width int64) []modelgraph.Tensor {
	if adaptive {
		return denseArrays(name+".Dense_0", stack, width, 3*width)
	}
	return []modelgraph.Tensor{array(dot(name, "scale"), slices.Concat(stack, []int64{width})...)}
}

// denseArrays is flax' Dense: kernel [in, out] and bias [out], stacked.
func denseArrays(name string, stack []int64, in, out int64) []modelgraph.Tensor {
	return []modelgraph.Tensor{array(dot(name, "kernel"), slices.Concat(stack, []int64{in, out})...), array(dot(name, "bias"), slices.Concat(stack, []int64{out})...)}
}

// normArrays is flax' LayerNorm.
func normArrays(name string, stack []int64, width int64) []modelgraph.Tensor {
	return []modelgraph.Tensor{array(dot(name, "scale"), slices.Concat(stack, []int64{width})...), array(dot(name, "bias"), slices.Concat(stack, []int64{width})...)}
}

// array is one of fp32, as flax makes parameters (param_dtype).
func array(name string, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape, DType: modelgraph.F32}
}

// arrays adds a layer that is known by its arrays and reads the previous layer.
func arrays(modules *builder, name string, params ...modelgraph.Tensor) {
	modules.add(name, modelgraph.Opaque{}, nil, params...).Inputs = nil
}

// renamed are tensors without the beginning of their names.
func renamed(tensors []modelgraph.Tensor, prefix string) []modelgraph.Tensor {
	for i := range tensors {
		tensors[i].Name = strings.TrimPrefix(tensors[i].Name, prefix)
	}
	return tensors
}
