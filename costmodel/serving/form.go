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

// shape finds the form of each block by the names of its tensors.
func (model *Model) shape(file *gguf.File) {
	for i := range file.Tensors {
		tensor := &file.Tensors[i]
		number := gguf.Block(tensor.Name)
		if number < 0 || number >= int64(len(model.Blocks)) {
			continue
		}
		form := &model.Blocks[number].form
		form.layerNorm, form.residualFirst = file.Has("attention.layer_norm_epsilon"), model.Architecture == "phi3"
		const rotated = 4 // models/smollm3.cpp, no_rope_layer_step
		form.unturned = model.Architecture == "smollm3" && (number+1)%rotated == 0
		form.late, form.afterTop, form.unscaled = model.Architecture == "gpt-oss", model.Architecture == "gpt-oss", slices.Contains(unscaled, model.Architecture)
		_, rest, _ := strings.Cut(strings.TrimPrefix(tensor.Name, "blk."), ".")
		switch rest {
		case "attn_qkv.weight":
			form.joined = true
		case "attn_q_norm.weight":
			form.normed = true
		case "attn_q.bias", "attn_qkv.bias":
			form.biased = true
		case "attn_output.bias":
			form.outBiased = true
		case "attn_norm.bias":
			form.normBiased = true
		case "post_attention_norm.weight":
			form.after = true
		case "post_ffw_norm.weight":
			form.afterFeed = true
		case "ffn_gate.weight":
			form.gated = true
		case "ffn_up.weight":
			form.gateJoined = tensor.Shape[0] == 2*model.Blocks[number].FeedForward
		case "ffn_up.bias":
			form.feedBiased = true
		case "ffn_gate_inp.weight":
			form.experts = true
		case "ffn_gate_inp.bias":
			form.biases = true
		case "ffn_norm.weight":
			form.feedNorm = true
		case "ffn_up_shexp.weight":
			form.shared, form.gated = tensor.Shape[0], true
		case "ffn_gate_inp_shexp.weight":
			form.sharedGate = true
		}
	}
	for i := range model.Blocks {
		form := &model.Blocks[i].form
		form.parallel = !form.feedNorm && !form.after
	}
}
