package hf

import "github.com/devmap-dev/devmap/modelgraph"

// fairseqBlock is a block with fairseq's module names, as in
// modeling_opt.py: OPTDecoderLayer and modeling_whisper.py:
// WhisperEncoderLayer, WhisperDecoderLayer. Every part is followed by its
// norm; fc1 and fc2 lie in the block itself.
type fairseqBlock struct {
	attention modelgraph.Attention
	mlp       modelgraph.MLP

	bias     bool // of all projections but the keys'
	keyBias  bool
	affine   bool // norms have weight and bias
	postNorm bool // norms follow the residual sum (OPT-350M)

	cross   bool   // encoder_attn between attention and feed-forward
	encoder string // the layer it reads; empty: not part of the model
}

// add adds the block as one unit.
func (f *fairseqBlock) add(b *builder, name string) {
	b.unit(name, func() {
		f.attend(b, dot(name, "self_attn"), f.attention, "")
		if f.cross {
			op := f.attention
			op.Cross = true
			f.attend(b, dot(name, "encoder_attn"), op, f.encoder)
		}
		params := join(linear("fc1", f.mlp.Dim, f.mlp.Hidden, f.bias), linear("fc2", f.mlp.Hidden, f.mlp.Dim, f.bias))
		f.sublayer(b, name, dot(name, "final_layer_norm"), f.mlp, "", params)
	})
}

// output is the layer of the block of that name which ends the data flow.
func (f *fairseqBlock) output(name string) string {
	if f.postNorm {
		return dot(name, "final_layer_norm")
	}
	return name
}

func (f *fairseqBlock) attend(b *builder, name string, op modelgraph.Attention, encoder string) {
	h := op.Dim
	params := join(
		linear("k_proj", h, h, f.keyBias), linear("v_proj", h, h, f.bias),
		linear("q_proj", h, h, f.bias), linear("out_proj", h, h, f.bias))
	f.sublayer(b, name, name+"_layer_norm", op, encoder, params)
}

// sublayer adds a part and, behind it in module order, its norm.
func (f *fairseqBlock) sublayer(b *builder, name, norm string, op modelgraph.Op, encoder string, params []modelgraph.Tensor) {
	residual := b.hidden
	if f.postNorm {
		b.add(name, op, []string{residual, residual, encoder}, params...)
		f.norm(b, norm, name)
		b.hidden = norm
		return
	}
	b.add(name, op, []string{norm, residual, encoder}, params...)
	f.norm(b, norm, residual)
	b.hidden = name
}

func (f *fairseqBlock) norm(b *builder, name, input string) {
	if f.affine {
		addLayerNorm(b, name, f.attention.Dim, input)
		return
	}
	b.add(name, modelgraph.Norm{Dim: f.attention.Dim, Style: modelgraph.LayerNorm}, []string{input})
}
