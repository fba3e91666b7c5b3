package hf

import "github.com/devmap-dev/devmap/modelgraph"

// linearAttention is the entry of layer_types for a layer with a state in
// place of keys and values.
const linearAttention = "linear_attention"

// lightning is MiniMax's linear attention (modeling_minimax.py:
// MiniMaxLightningAttention), as wide as the attention of its other layers,
// with decays of a chunk in buffers.
func lightning(cfg *config, attn attention) part {
	inner := cfg.product("head_dim", attn.heads, attn.headDim)
	chunk := cfg.pos(0, "block_size")
	decay := func(name string, shape ...int64) modelgraph.Tensor { return buffer(name, modelgraph.F32, shape...) }
	return part{
		op: modelgraph.StateSpace{Dim: attn.dim, Inner: inner, State: attn.headDim, Heads: attn.heads, Groups: attn.heads, Chunk: chunk},
		params: join(normParams("norm", inner, false), linearParams("qkv_proj", attn.dim, 3*inner, false),
			linearParams("out_proj", inner, attn.dim, false), linearParams("output_gate", attn.dim, inner, false)),
		buffers: []modelgraph.Tensor{
			decay("slope_rate", attn.heads, 1, 1), decay("query_decay", attn.heads, chunk, 1), decay("key_decay", attn.heads, chunk, 1),
			decay("diagonal_decay", 1, attn.heads, chunk, chunk),
		},
	}
}
