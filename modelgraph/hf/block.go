package hf

import "slices"

// blockForm is the layout of a decoder layer: names of its modules (empty: absent) and their order.
// A norm before a part reads the residual stream. A norm after a part adds the residual to its
// result; without one, the part adds it. Without a feed-forward, a layer is attention (or its
// replacement) alone.
type blockForm struct {
	attnNorm, attn, attnPost string
	ffnNorm, ffn, ffnPost    string
	// attnParallel and ffnParallel are parts with the inputs of attention and feed-forward; their
	// results are added too (Falcon-H1, Granite 4).
	attnParallel, ffnParallel string
	// parallel: attention and feed-forward read the same residual stream, and both are added to it.
	// A feed-forward without a norm reads attention's.
	parallel bool
	// order is empty if it is attn, ffn, attnNorm, attnPost, ffnNorm, ffnPost.
	order []string
}

// The forms that many families share.
var (
	// llamaBlock: modeling_llama.py, LlamaDecoderLayer.
	llamaBlock = blockForm{attnNorm: "input_layernorm", attn: "self_attn", ffnNorm: "post_attention_layernorm", ffn: "mlp"}
	// gemmaBlock has norms after both parts too (modeling_gemma2.py).
	gemmaBlock = blockForm{
		attnNorm: "input_layernorm", attn: "self_attn", attnPost: "post_attention_layernorm",
		ffnNorm: "pre_feedforward_layernorm", ffn: "mlp", ffnPost: "post_feedforward_layernorm",
	}
	// olmo2Block has norms only after the parts (modeling_olmo2.py).
	olmo2Block = blockForm{attn: "self_attn", attnPost: "post_attention_layernorm", ffn: "mlp", ffnPost: "post_feedforward_layernorm"}
	// parallelBlock has one norm before both parts (modeling_cohere.py, modeling_phi.py).
	parallelBlock = blockForm{attnNorm: "input_layernorm", attn: "self_attn", ffn: "mlp", parallel: true}
)

// modules are the names in the order of registration.
func (form *blockForm) modules() []string {
	if form.order != nil {
		return form.order
	}
	return slices.DeleteFunc([]string{form.attn, form.ffn, form.attnNorm, form.attnPost, form.ffnNorm, form.ffnPost},
		func(name string) bool { return name == "" })
}

// block adds one decoder layer. Modules are in the order the framework registers them; Inputs carry
// the order they run in.
func (d *decoder) block(modules *builder, name string, i int64) {
	form := d.form
	if d.formAt != nil {
		form = d.formAt(i)
	}
	if form.attn == "" {
		form = llamaBlock
	}
	residual := modules.hidden
	adds := make(map[string]func(), 6)
	norm := func(module string, post bool, in, residual string) string {
		full := dot(name, module)
		adds[module] = func() { d.addNorm(modules, full, post, in, residual) }
		return full
	}
	// sublayer adds a part between its norms and returns the layer of the sum.
	sublayer := func(module, post string, p part, in, residual string) string {
		full, sum := dot(name, module), residual
		if post != "" {
			sum = ""
		}
		adds[module] = func() { d.add(modules, full, p, in, sum) }
		if post != "" {
			return norm(post, true, full, residual)
		}
		return full
	}
	in := residual
	if form.attnNorm != "" {
		in = norm(form.attnNorm, false, residual, "")
	}
	mixed := sublayer(form.attn, form.attnPost, d.attention(i), in, residual)
	if form.attnParallel != "" {
		mixed = sublayer(form.attnParallel, "", d.attentionParallel(i), in, mixed)
	}
	modules.hidden = mixed
	switch {
	case form.parallel && form.ffnNorm != "":
		in = norm(form.ffnNorm, false, residual, "")
	case form.ffnNorm != "":
		in = norm(form.ffnNorm, false, mixed, "")
	case !form.parallel:
		in = mixed
	}
	if form.ffn != "" {
		modules.hidden = sublayer(form.ffn, form.ffnPost, d.ffn(i), in, mixed)
	}
	if form.ffnParallel != "" {
		modules.hidden = sublayer(form.ffnParallel, "", d.ffnParallel(i), in, modules.hidden)
	}
	for _, module := range form.modules() {
		adds[module]()
	}
}
