package hf

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// gemma3n is the language model of Gemma 3n (modeling_gemma3n.py). It has several parallel hidden
// states, and one passes the layer (AltUp). A low-rank branch is next to attention (LAuReL). Every
// layer has own inputs, and the last layers have no keys and values.
type gemma3n struct {
	*decoder
	cfg  *config
	attn attention
	// states are AltUp's; perLayer is the width of a layer's own input, whose rows are
	// perLayerRows; rank is LAuReL's.
	states, perLayer, perLayerRows, rank int64

	types   []string
	inner   []int64
	shared  int64 // the first layer without keys and values
	window  int64
	element int64 // bytes
	own     string
}

func gemma3nText(cfg *config) *decoder { return readGemma3n(cfg).decoder }

func readGemma3n(cfg *config) *gemma3n {
	hidden := cfg.pos(0, "hidden_size")
	model := &gemma3n{cfg: cfg, decoder: &decoder{hidden: hidden, norm: modelgraph.RMSNorm, embedScale: true}}
	model.vocab, model.layers = cfg.pos(0, "vocab_size"), cfg.count(0, "num_hidden_layers")
	model.attn = groupedAttention(cfg, hidden, headDefaults{})
	cfg.dividesHidden(hidden, model.attn.heads)
	model.attn.bias, model.attn.qkNorm, model.attn.scale = cfg.on("attention_bias"), modelgraph.RMSNorm, 1
	model.states, model.perLayer = cfg.pos(0, "altup_num_inputs"), cfg.pos(0, "hidden_size_per_layer_input")
	model.perLayerRows, model.rank = cfg.pos(0, "vocab_size_per_layer_input"), cfg.pos(0, "laurel_rank")
	const most = 64 // states, each with separate matrices
	if model.states > most {
		cfg.fail("altup_num_inputs", "%d is more than %d", model.states, most)
		model.states = 1
	}
	cfg.product("hidden_size_per_layer_input", model.layers, model.perLayer)
	model.inner = cfg.perLayer("intermediate_size", model.layers)
	if slices.Contains(model.inner, 0) && model.layers > 0 {
		cfg.fail("intermediate_size", "0 is not a size: it must be 1 or more")
	}
	model.types = layerTypes(cfg, model.layers, func(i int64) bool { return (i+1)%5 != 0 })
	model.window = readWindow(cfg, 0)
	model.sharing()
	dtype, _ := modelDType(cfg)
	model.element = dtype.Bits() / 8
	model.softCap = cfg.has("final_logit_softcapping") && cfg.float(0, "final_logit_softcapping") != 0
	model.logitCap = cfg.softCap(0, "final_logit_softcapping")
	model.rotary = typedRotary(model.attn.headDim, model.types)
	model.custom = model.layer
	model.behind = func(_ *builder, path string) { model.own = dot(path, "per_layer_projection_norm") }
	model.ahead = model.layerInputs
	return model
}

// sharing finds the first layer that shares keys and values with an earlier layer of its type.
func (model *gemma3n) sharing() {
	model.shared = model.layers
	before := model.layers - model.cfg.dim(0, "num_kv_shared_layers")
	if before > 0 {
		model.shared = before
	}
	for i, kind := range model.types {
		if before <= 0 || !slices.Contains(model.types[:before], kind) {
			model.cfg.fail("num_kv_shared_layers", "no layer has the keys and values of layer %d (%s)", i, kind)
			return
		}
	}
}

// attend is Gemma3nTextAttention; v's norm has no weight.
func (model *gemma3n) attend(i int64) part {
	attn := model.attn
	if model.types[i] == slidingAttention {
		attn.window = model.window
	}
	op := attn.op()
	q, kv := attn.heads*attn.headDim, attn.kvHeads*attn.headDim
	params := join(linearParams("q_proj", attn.dim, q, attn.bias), normParams("q_norm", attn.headDim, false))
	if i < model.shared {
		params = join(params, linearParams("k_proj", attn.dim, kv, attn.bias), linearParams("v_proj", attn.dim, kv, attn.bias), normParams("k_norm", attn.headDim, false))
	} else {
		op.SharedKV = true
	}
	return part{op: op, params: join(params, linearParams("o_proj", q, attn.dim, attn.bias))}
}

// layer is Gemma3nTextDecoderLayer.
func (model *gemma3n) layer(modules *builder, name string, i int64) {
	hidden, stream := model.hidden, modules.hidden
	at := func(module string) string { return dot(name, module) }
	linear := func(module string, in, out int64, activation string, inputs ...string) *modelgraph.Layer {
		return modules.add(at(module), modelgraph.Linear{In: in, Out: out, Activation: activation}, inputs, linearParams("", in, out, false)...)
	}
	norm := func(module string, post bool, inputs ...string) *modelgraph.Layer {
		return modules.add(at(module), model.normOp(post), inputs, normParams("", hidden, false)...)
	}
	attn := model.attend(i)
	modules.add(at("self_attn"), attn.op, []string{at("input_layernorm")}, attn.params...)
	ffn := feedForward{dim: hidden, hidden: model.inner[i], activation: model.cfg.str("gelu_pytorch_tanh", "hidden_activation")}.part()
	modules.add(at("mlp"), ffn.op, []string{at("pre_feedforward_layernorm")}, ffn.params...)
	norm("input_layernorm", false, stream)
	norm("post_attention_layernorm", true, at("self_attn"), stream)
	norm("pre_feedforward_layernorm", false, at("post_attention_layernorm"), at("laurel.post_laurel_norm"))
	norm("post_feedforward_layernorm", true, at("mlp"), at("pre_feedforward_layernorm"))
	model.altUp(modules, at("altup"), stream, at("post_feedforward_layernorm"))
	linear("altup.correction_coefs", model.states, model.states, "", at("altup.modality_router"))
	linear("altup.prediction_coefs", model.states, model.states*model.states, "", at("altup.modality_router"))
	linear("altup.modality_router", hidden, model.states, "tanh", at("altup.router_norm")).Repeat = 2
	norm("altup.router_norm", false, stream).Repeat = 2
	linear("laurel.linear_left", hidden, model.rank, "", at("input_layernorm"))
	linear("laurel.linear_right", model.rank, hidden, "", at("laurel.linear_left"))
	norm("laurel.post_laurel_norm", true, at("laurel.linear_right"), at("input_layernorm"))
	linear("per_layer_input_gate", hidden, model.perLayer, model.cfg.str("", "hidden_activation"), at("altup"))
	linear("per_layer_projection", model.perLayer, hidden, "", at("per_layer_input_gate"), model.own)
	last := norm("post_per_layer_input_norm", true, at("per_layer_projection"), at("altup"))
	// All states continue to the next layer.
	sent := modelgraph.NotDeclared()
	sent.OutputBytes = 0
	sent.Growth.OutputBytes.Token = model.states * hidden * model.element
	last.Declared = &sent
	modules.hidden = last.Name
}

// altUp is the mixing of the states (Gemma3nTextAltUp: predict and correct). For each token it
// keeps the states twice (in the product's order and as predicted) and the correction once a state.
// The workspace has two copies.
func (model *gemma3n) altUp(modules *builder, name, stream, activated string) {
	mixed := modules.add(name, modelgraph.Parameter{}, []string{activated, stream}, tensor("correct_output_scale", model.hidden))
	mixed.Buffers = []modelgraph.Tensor{tensor("router_input_scale")}
	retained := modelgraph.NotDeclared()
	retained.ActivationBytes, retained.WorkspaceBytes = 0, 0
	states := model.states * model.hidden * model.element
	retained.Growth.ActivationBytes.Token, retained.Growth.WorkspaceBytes.Token = 3*states, 2*states
	mixed.Declared = &retained
}

// layerInputs adds modules listed after the layers: the layers' own inputs, which run before them,
// and the projections into and out of the other states.
func (model *gemma3n) layerInputs(modules *builder, path string) {
	embed, hidden, wide := dot(path, "embed_tokens"), model.hidden, model.layers*model.perLayer
	for _, name := range []string{"per_layer_projection_scale", "per_layer_input_scale"} {
		modules.add(dot(path, name), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{tensor("")}
	}
	stack := modules.hidden
	rows := modelgraph.Embedding{Vocab: model.perLayerRows, Dim: wide, Scaled: true, Factor: math.Sqrt(float64(model.perLayer))}
	modules.add(dot(path, "embed_tokens_per_layer"), rows, []string{""}, tensor("weight", rows.Vocab, wide)).Buffers = []modelgraph.Tensor{tensor("embed_scale")}
	linear := func(name string, out int64, reads string) string {
		return modules.add(dot(path, name), modelgraph.Linear{In: hidden, Out: out}, []string{reads}, linearParams("", hidden, out, false)...).Name
	}
	projection := linear("per_layer_model_projection", wide, embed)
	// One row a layer, which that layer reads.
	modules.add(model.own, modelgraph.Norm{Dim: model.perLayer, Style: modelgraph.RMSNorm}, []string{projection, dot(path, "embed_tokens_per_layer")},
		normParams("", model.perLayer, false)...).Repeat = max(1, model.layers)
	var into, out []string
	for i := range model.states - 1 {
		into = append(into, linear(indexed("altup_projections", i), hidden, embed))
	}
	for i := range model.states - 1 {
		out = append(out, linear(indexed("altup_unembed_projections", i), hidden, ""))
	}
	model.join(modules, path, into, out)
	modules.hidden = stack
}

// join connects the projections of the embeddings to the first layer's states, and the states'
// output to the last norm.
func (model *gemma3n) join(modules *builder, path string, into, out []string) {
	first, norm := dot(indexed(dot(path, "layers"), 0), "altup"), dot(path, "norm")
	for i := range modules.layers {
		layer := &modules.layers[i]
		switch layer.Name {
		case first:
			layer.Inputs = append(slices.Clone(layer.Inputs), into...)
		case norm:
			before := layer.Inputs
			layer.Inputs = append(slices.Clone(before), out...)
			for j := range modules.layers {
				if slices.Contains(out, modules.layers[j].Name) {
					modules.layers[j].Inputs = slices.Clone(before)
				}
			}
		}
	}
}
