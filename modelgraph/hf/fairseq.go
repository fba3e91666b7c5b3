package hf

import "github.com/devmap-dev/devmap/modelgraph"

// fairseqBlock is a block with fairseq's module names, as in modeling_opt.py: OPTDecoderLayer and
// modeling_whisper.py: WhisperEncoderLayer, WhisperDecoderLayer. Every part is followed by its
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
func (block *fairseqBlock) add(modules *builder, name string) {
	modules.unit(name, func() {
		block.attend(modules, dot(name, "self_attn"), block.attention, "")
		if block.cross {
			op := block.attention
			op.Cross = true
			block.attend(modules, dot(name, "encoder_attn"), op, block.encoder)
		}
		params := join(linearParams("fc1", block.mlp.Dim, block.mlp.Hidden, block.bias), linearParams("fc2", block.mlp.Hidden, block.mlp.Dim, block.bias))
		block.sublayer(modules, name, dot(name, "final_layer_norm"), block.mlp, "", params)
	})
}

// output is the layer of the block of that name which ends the data flow.
func (block *fairseqBlock) output(name string) string {
	if block.postNorm {
		return dot(name, "final_layer_norm")
	}
	return name
}

func (block *fairseqBlock) attend(modules *builder, name string, op modelgraph.Attention, encoder string) {
	hidden := op.Dim
	params := join(
		linearParams("k_proj", hidden, hidden, block.keyBias), linearParams("v_proj", hidden, hidden, block.bias),
		linearParams("q_proj", hidden, hidden, block.bias), linearParams("out_proj", hidden, hidden, block.bias))
	block.sublayer(modules, name, name+"_layer_norm", op, encoder, params)
}

// sublayer adds a part and, after it in module order, its norm.
func (block *fairseqBlock) sublayer(modules *builder, name, norm string, op modelgraph.Op, encoder string, params []modelgraph.Tensor) {
	residual := modules.hidden
	if block.postNorm {
		modules.add(name, op, []string{residual, residual, encoder}, params...)
		block.norm(modules, norm, name)
		modules.hidden = norm
		return
	}
	modules.add(name, op, []string{norm, residual, encoder}, params...)
	block.norm(modules, norm, residual)
	modules.hidden = name
}

func (block *fairseqBlock) norm(modules *builder, name, input string) {
	if block.affine {
		addLayerNorm(modules, name, block.attention.Dim, input)
		return
	}
	modules.add(name, modelgraph.Norm{Dim: block.attention.Dim, Style: modelgraph.LayerNorm}, []string{input})
}
