package hf

import "github.com/devmap-dev/devmap/modelgraph"

// fairseqBlock is a block with fairseq's module names, as in modeling_whisper.py: WhisperEncoderLayer,
// WhisperDecoderLayer. Every part is followed by its norm; fc1 and fc2 lie in the block itself.
// Keys have no bias.
type fairseqBlock struct {
	attention modelgraph.Attention
	mlp       modelgraph.MLP

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
		params := join(linearParams("fc1", block.mlp.Dim, block.mlp.Hidden, true), linearParams("fc2", block.mlp.Hidden, block.mlp.Dim, true))
		block.sublayer(modules, name, dot(name, "final_layer_norm"), block.mlp, "", params)
	})
}

func (block *fairseqBlock) attend(modules *builder, name string, op modelgraph.Attention, encoder string) {
	hidden := op.Dim
	params := join(
		linearParams("k_proj", hidden, hidden, false), linearParams("v_proj", hidden, hidden, true),
		linearParams("q_proj", hidden, hidden, true), linearParams("out_proj", hidden, hidden, true))
	block.sublayer(modules, name, name+"_layer_norm", op, encoder, params)
}

// sublayer adds a part and, after it in module order, its norm.
func (block *fairseqBlock) sublayer(modules *builder, name, norm string, op modelgraph.Op, encoder string, params []modelgraph.Tensor) {
	residual := modules.hidden
	modules.add(name, op, []string{norm, residual, encoder}, params...)
	addLayerNorm(modules, norm, block.attention.Dim, residual)
	modules.hidden = name
}
