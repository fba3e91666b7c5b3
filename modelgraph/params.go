package modelgraph

import "cmp"

// Params returns the parameters that follow from an operation's dimensions, without a type. They
// have the names and the order of Transformers' module of that kind. The files are
// modeling_llama.py for attention and feed-forward, modeling_phi3.py for fused ones,
// modeling_deepseek_v3.py for latent attention and experts, and modeling_mamba.py. Matrices are
// [out, in] as in torch.nn.Linear.
//
// Argument biased says which linear layers have a bias ("q_proj", "" for a layer that is one
// itself); nil: none. The result is nil for operations whose tensors do not follow from their
// dimensions: [Rotary], [Parameter] and [Opaque].
func Params(op Op, biased func(linear string) bool) []Tensor {
	p := params{biased: biased}
	switch op := op.(type) {
	case Embedding:
		p.add("weight", op.Vocab, op.Dim)
	case Norm:
		p.add("weight", op.Dim)
		if op.Style == LayerNorm {
			p.add("bias", op.Dim)
		}
	case Attention:
		p.attention(op)
	case MLP:
		p.mlp("", op)
	case MoE:
		p.experts(op)
	case Head:
		p.linear("", op.Dim, op.Vocab)
	case Linear:
		p.linear("", op.In, op.Out)
	case Conv:
		p.add("weight", op.Out, op.In, op.Kernel)
		p.bias("", op.Out)
	case StateSpace:
		p.stateSpace(op)
	}
	return p.list
}

// params collects tensors.
type params struct {
	biased func(linear string) bool
	list   []Tensor
}

func (p *params) add(name string, shape ...int64) {
	p.list = append(p.list, Tensor{Name: name, Shape: shape})
}

// linear is torch.nn.Linear.
func (p *params) linear(name string, in, out int64) {
	p.add(FullName(name, "weight"), out, in)
	p.bias(name, out)
}

func (p *params) bias(name string, width int64) {
	if p.biased != nil && p.biased(name) {
		p.add(FullName(name, "bias"), width)
	}
}

func (p *params) attention(op Attention) {
	value := op.ValueDim
	if value == 0 {
		value = op.HeadDim
	}
	query, key, out := op.Heads*op.HeadDim, op.KVHeads*op.HeadDim, op.Heads*value
	switch {
	case op.KVRank > 0:
		p.latents(op, value)
		p.linear("o_proj", out, op.Dim)
	case op.Fused:
		p.linear("o_proj", out, op.Dim)
		p.linear("qkv_proj", op.Dim, query+key+op.KVHeads*value)
	case op.SharedKV:
		p.linear("q_proj", op.in(), query+op.gate())
		p.linear("o_proj", out, op.Dim)
	default:
		p.linear("q_proj", op.in(), query+op.gate())
		p.linear("k_proj", op.in(), key)
		p.linear("v_proj", op.in(), op.KVHeads*value)
		p.linear("o_proj", out, op.Dim)
	}
	switch {
	case op.QKNormWhole:
		p.add("q_norm.weight", query)
		p.add("k_norm.weight", key)
	case op.QKNorm != "":
		p.add("q_norm.weight", op.HeadDim)
		p.add("k_norm.weight", op.HeadDim)
	}
	if op.LayerScale {
		p.add("layer_scale", op.Dim)
	}
}

// in returns the width of the input of q, k and v.
func (attention Attention) in() int64 { return cmp.Or(attention.InDim, attention.Dim) }

// gate returns the width of the gate that q's projection makes.
func (attention Attention) gate() int64 {
	if !attention.Gated {
		return 0
	}
	return attention.Heads * attention.HeadDim
}

// latents adds the projections to the latents and back (DeepSeek-V2, arXiv 2405.04434, §2.1).
// Without a latent, q has a direct one.
func (p *params) latents(op Attention, value int64) {
	if op.QRank == 0 {
		p.linear("q_proj", op.Dim, op.Heads*op.HeadDim)
	} else {
		p.linear("q_a_proj", op.Dim, op.QRank)
		p.add("q_a_layernorm.weight", op.QRank)
		p.linear("q_b_proj", op.QRank, op.Heads*op.HeadDim)
	}
	p.linear("kv_a_proj_with_mqa", op.Dim, op.KVRank+op.RopeDim)
	p.add("kv_a_layernorm.weight", op.KVRank)
	p.linear("kv_b_proj", op.KVRank, op.Heads*(op.HeadDim-op.RopeDim+value))
}

func (p *params) mlp(path string, op MLP) {
	gate, up, down := FullName(path, "gate_proj"), FullName(path, "up_proj"), FullName(path, "down_proj")
	switch {
	case op.Gated && op.Fused:
		p.linear(FullName(path, "gate_up_proj"), op.Dim, 2*op.Hidden)
	case op.Gated:
		p.linear(gate, op.Dim, op.Hidden)
		p.linear(up, op.Dim, op.Hidden)
	default:
		p.linear(up, op.Dim, op.Hidden)
	}
	p.linear(down, op.Hidden, op.Dim)
	if op.LayerScale {
		p.add(FullName(path, "layer_scale"), op.Dim)
	}
}

// experts adds the experts, stacked in one tensor for each projection.
func (p *params) experts(op MoE) {
	p.add("experts.gate_up_proj", op.Experts, 2*op.Hidden, op.Dim)
	p.add("experts.down_proj", op.Experts, op.Dim, op.Hidden)
	p.add("gate.weight", op.Experts, op.Dim)
	if op.SharedHidden > 0 {
		p.mlp("shared_experts", MLP{Dim: op.Dim, Hidden: op.SharedHidden, Gated: true})
	}
}

// stateSpace adds the mixer's own parameters before those of its modules. The step's projection
// always has a bias.
func (p *params) stateSpace(op StateSpace) {
	if op.Heads > 0 {
		p.chunked(op)
		return
	}
	p.add("A_log", op.Inner, op.State)
	p.add("D", op.Inner)
	p.add("conv1d.weight", op.Inner, 1, op.Kernel)
	p.bias("conv1d", op.Inner)
	p.linear("in_proj", op.Dim, 2*op.Inner)
	p.linear("x_proj", op.Inner, op.DtRank+2*op.State)
	p.add("dt_proj.weight", op.Inner, op.DtRank)
	p.add("dt_proj.bias", op.Inner)
	p.linear("out_proj", op.Inner, op.Dim)
}

// chunked adds the parameters of Mamba-2's mixer (modeling_mamba2.py: Mamba2Mixer).
func (p *params) chunked(op StateSpace) {
	channels := op.Inner + 2*op.Groups*op.State
	p.add("dt_bias", op.Heads)
	p.add("A_log", op.Heads)
	p.add("D", op.Heads)
	p.add("conv1d.weight", channels, 1, op.Kernel)
	p.bias("conv1d", channels)
	p.linear("in_proj", op.Dim, op.Inner+channels+op.Heads)
	p.add("norm.weight", op.Inner)
	p.linear("out_proj", op.Inner, op.Dim)
}
