package serving

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// form is what of a block decides its values, as the names of its tensors show.
type form struct {
	joined        bool // q, k and v are one product
	normed        bool // q and k are normed
	biased        bool // q, k and v have a bias
	outBiased     bool
	layerNorm     bool // norms are LayerNorm, not RMS
	normBiased    bool
	after         bool // a norm follows attention
	afterFeed     bool // a norm follows the feed-forward
	parallel      bool // attention and the feed-forward read one norm
	gated         bool // the feed-forward has a gate
	gateJoined    bool // gate and up are one product
	feedBiased    bool
	experts       bool
	biases        bool  // of experts' products
	shared        int64 // width of the shared expert; 0: none
	sharedGate    bool  // it has a gate of its own
	feedNorm      bool  // a norm comes before the feed-forward
	late          bool  // the last block computes all tokens, not only those with logits
	afterTop      bool  // softmax runs over the chosen experts alone
	residualFirst bool  // the residual is the first operand of the last sum
	unscaled      bool  // weights of experts are not divided by their sum
	unturned      bool  // positions do not rotate q and k
}

// signs are the tensors of a block that show its form.
var signs = map[string]func(form *form){
	"attn_qkv.weight":            func(form *form) { form.joined = true },
	"attn_q_norm.weight":         func(form *form) { form.normed = true },
	"attn_q.bias":                func(form *form) { form.biased = true },
	"attn_qkv.bias":              func(form *form) { form.biased = true },
	"attn_output.bias":           func(form *form) { form.outBiased = true },
	"attn_norm.bias":             func(form *form) { form.normBiased = true },
	"post_attention_norm.weight": func(form *form) { form.after = true },
	"post_ffw_norm.weight":       func(form *form) { form.afterFeed = true },
	"ffn_norm.weight":            func(form *form) { form.feedNorm = true },
	"ffn_gate.weight":            func(form *form) { form.gated = true },
	"ffn_up.bias":                func(form *form) { form.feedBiased = true },
	"ffn_gate_inp.weight":        func(form *form) { form.experts = true },
	"ffn_gate_inp.bias":          func(form *form) { form.biases = true },
	"ffn_gate_inp_shexp.weight":  func(form *form) { form.sharedGate = true },
}

// shape finds the form of each block by the names of its tensors, and by its architecture.
func (model *Model) shape(file *gguf.File) {
	for i := range file.Tensors {
		tensor := &file.Tensors[i]
		number := gguf.Block(tensor.Name)
		if number < 0 || number >= int64(len(model.Blocks)) {
			continue
		}
		block := &model.Blocks[number]
		_, rest, _ := strings.Cut(strings.TrimPrefix(tensor.Name, "blk."), ".")
		if sign := signs[rest]; sign != nil {
			sign(&block.form)
		}
		switch rest {
		case "ffn_up.weight":
			block.form.gateJoined = tensor.Shape[0] == 2*block.FeedForward
		case "ffn_up_shexp.weight":
			block.form.shared, block.form.gated = tensor.Shape[0], true
		}
	}
	arch := model.Architecture
	for i := range model.Blocks {
		const rotated = 4 // models/smollm3.cpp, no_rope_layer_step
		form := &model.Blocks[i].form
		form.parallel = !form.feedNorm && !form.after
		form.layerNorm, form.residualFirst = file.Has("attention.layer_norm_epsilon"), arch == "phi3"
		form.unturned = arch == "smollm3" && (i+1)%rotated == 0
		form.late, form.afterTop, form.unscaled = arch == "gpt-oss", arch == "gpt-oss", slices.Contains(unscaled, arch)
	}
}
