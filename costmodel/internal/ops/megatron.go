package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// megatron returns the cost of an op in Megatron-Core 0.19 with TransformerEngine's modules, for
// training (core/models/gpt/gpt_layer_specs.py, get_gpt_layer_with_transformer_engine_spec). known
// is false for other ops. The product itself adds weights' gradients to the fp32 buffer
// (gradient_accumulation_fusion), so no op makes a new one.
func megatron(op modelgraph.Op, shape *Shape) (cost Cost, known bool) {
	switch op := op.(type) {
	case modelgraph.Embedding:
		megatronEmbedding(op, &cost, shape)
	case modelgraph.Norm:
		megatronNorm(op, &cost, shape)
	case modelgraph.Attention:
		if op.Cross || op.Gated || op.SharedKV || op.IndexHeads > 0 {
			return cost, false
		}
		if op.KVRank > 0 {
			megatronLatent(attention{Attention: op}, &cost, shape)
			break
		}
		megatronAttention(attention{Attention: op}, &cost, shape)
	case modelgraph.MLP:
		megatronMLP(op, &cost, shape)
	case modelgraph.MoE:
		if shape.Routed == 0 {
			return cost, false
		}
		megatronExperts(op, &cost, shape)
	case modelgraph.Head:
		megatronHead(op, &cost, shape)
	case modelgraph.Rotary, modelgraph.Parameter:
	default:
		return cost, false
	}
	cost.Known = true
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.Saved)
	cost.peak(backwardPoint{-cost.Memory.Saved, 0, 0})
	return cost, true
}

// megatronEmbedding adds the vocabulary's table (core/tensor_parallel/layers.py).
func megatronEmbedding(op modelgraph.Embedding, cost *Cost, shape *Shape) {
	out := 2 * op.Dim * shape.Tokens
	cost.Output, cost.Memory.Saved = apart(shape, out), 8*shape.Tokens
	cost.Memory.Forward = 2*out + 8*shape.Tokens // batch and length are transposed
	sums := int64(0)
	if shape.Tokens > 3072 { // Embedding.cu, as in torch
		sums = 4*op.Dim*(shape.Tokens/10+min(shape.Tokens, op.Vocab)) + 3*8*shape.Tokens
	}
	cost.peak(backwardPoint{out + sums + 2*op.Vocab*op.Dim, 0, 0}) // the table's gradient in 16 bits
}

// megatronNorm adds a norm, which is fused with the next projection.
func megatronNorm(op modelgraph.Norm, cost *Cost, shape *Shape) {
	// TELayerNormColumnParallelLinear keeps the norm's input and output.
	out, rows := apart(shape, 2*op.Dim*shape.Tokens), apart(shape, 4*shape.Tokens)
	cost.Output, cost.Memory.Saved = out, 2*out+rows
	if op.Style == modelgraph.LayerNorm {
		cost.Memory.Saved += rows
	}
	if !shape.HeadAlone { // the head is no 8-bit product
		cost.Memory.Saved -= eighth(shape, out)
	}
	cost.Memory.Forward = cost.Memory.Saved + out
	cost.peak(backwardPoint{3 * out, 0, 0})
}

// megatronAttention adds self-attention (core/transformer/attention.py). The projection's output is
// split without a copy. If core_attn is recomputed, its checkpoint keeps its inputs q, k and v;
// keeping v keeps the whole projection. With rotary embeddings, q and k are new tensors, and each
// keeps its cosines and sines (rope_utils.py, _apply_rotary_pos_emb_bshd). Without the checkpoint,
// the kernel keeps only a copy of v, and the log-sum-exp.
func megatronAttention(op attention, cost *Cost, shape *Shape) {
	dims, tokens := op.geometry(shape), shape.Tokens
	dims.by = flashKernel
	q, kv := 2*tokens*dims.q, 2*tokens*(dims.k+dims.v)
	stream, out, whole := apart(shape, 2*tokens*op.Dim), 2*tokens*dims.out, gatheredTokens(shape, 2*tokens*op.Dim)
	rotated := int64(0)
	if op.Rope {
		rotated = q + 2*tokens*dims.k
		cost.Memory.Saved += rotated + 4*2*tokens*op.HeadDim
	}
	if op.QKNorm != "" { // TENorm keeps contiguous copies of its inputs
		cost.Memory.Saved += q + 2*tokens*dims.k + 4*tokens*op.normRows()
	}
	cost.Output = stream
	recomputed := kv + q // recomputed by the kernel's call, in its own layout
	switch {
	case shape.CoreAttention || !op.Rope:
		cost.Memory.Saved += q + kv
	default:
		cost.Memory.Saved += 2 * tokens * dims.v
	}
	if !shape.CoreAttention {
		cost.Memory.Saved += 4 * tokens * op.Heads
		recomputed = 0
	}
	cost.Memory.Saved += out
	if op.Dropout {
		cost.Memory.Saved += apart(shape, op.Dim*tokens)
	}
	if shape.Attention == value.EagerAttention { // UnfusedDotProductAttention: probabilities, their dropout, and its mask
		scores := op.Heads * tokens * shape.Length
		cost.Memory.Saved += 2 * scores
		if op.Dropout {
			cost.Memory.Saved += 3 * scores
		}
		recomputed += 4 * scores
	}
	cost.Memory.Forward = 2*stream + cost.Memory.Saved + max(kv+q+out, stream, whole)
	cost.FLOPs = dims.flops
	cost.peak(
		backwardPoint{stream + out + whole + recomputed + op.kernelBackward(&dims, shape), 0, 0},
		backwardPoint{2*stream + q + kv + rotated - cost.Memory.Saved, 0, 0},
	)
}

// megatronLatent adds multi-latent attention (core/transformer/multi_latent_attention.py,
// MLASelfAttention). Each GPU has the whole projections down, which read only its tokens. The
// projections up include the norms of the latents. TransformerEngine keeps their inputs and
// outputs. Rotary parts are joined with the others to new queries and keys, and values are copied
// (MultiLatentAttention.forward, contiguous).
func megatronLatent(op attention, cost *Cost, shape *Shape) {
	dims, tokens := op.geometry(shape), shape.Tokens
	dims.by = flashKernel
	q, values := 2*tokens*op.Heads*op.HeadDim, 2*tokens*op.Heads*op.ValueDim
	stream, whole := apart(shape, 2*tokens*op.Dim), gatheredTokens(shape, 2*tokens*max(op.QRank, op.KVRank))
	latents := apart(shape, 2*tokens*(2*op.QRank+2*op.KVRank+op.RopeDim)) + 2*tokens*op.RopeDim
	up := 2 * tokens * op.Heads * (op.HeadDim - op.RopeDim + op.ValueDim) // keys without the rotary part, and values
	cost.Output, cost.FLOPs = stream, dims.flops
	cost.Memory.Saved = latents + 2*q + 2*values - eighth(shape, apart(shape, 2*tokens*(op.QRank+op.KVRank)))
	recomputed := 2*q + values
	if !shape.CoreAttention {
		cost.Memory.Saved += 4 * tokens * op.Heads
		recomputed = 0
	}
	if op.Dropout {
		cost.Memory.Saved += apart(shape, op.Dim*tokens)
	}
	if shape.Attention == value.EagerAttention {
		scores := op.Heads * tokens * shape.Length
		cost.Memory.Saved += 2 * scores
		if op.Dropout {
			cost.Memory.Saved += 3 * scores
		}
		recomputed += 4 * scores
	}
	cost.Memory.Forward = 2*stream + cost.Memory.Saved + max(q+up, stream, whole)
	cost.peak(
		backwardPoint{stream + values + whole + recomputed + op.kernelBackward(&dims, shape), 0, 0},
		backwardPoint{2*stream + 2*q + up + values - cost.Memory.Saved, 0, 0},
	)
}

// eighth returns the bytes that 8-bit products save: half of their 16-bit inputs. Their copies by
// columns stay for the weights' gradients (TransformerEngine, pytorch/module/linear.py,
// update_usage(rowwise_usage=False)). The product after attention keeps its 16-bit input
// (multi_latent_attention.py and attention.py, set_save_original_input).
func eighth(shape *Shape, bytes int64) int64 {
	if !shape.Float8.On {
		return 0
	}
	return bytes / 2
}

// megatronMLP keeps fc1's output for the fused activation, and the activation's for fc2
// (core/fusions/fused_bias_swiglu.py, fused_bias_gelu.py).
func megatronMLP(op modelgraph.MLP, cost *Cost, shape *Shape) {
	stream, hidden, matrices := apart(shape, 2*op.Dim*shape.Tokens), 2*op.Hidden*shape.Tokens, int64(2)
	whole := gatheredTokens(shape, 2*op.Dim*shape.Tokens)
	inner := hidden
	if op.Gated {
		inner, matrices = 2*hidden, 3
	}
	cost.Output, cost.FLOPs = stream, 2*float64(shape.Tokens)*float64(matrices*op.Dim*op.Hidden)
	cost.Memory.Saved = inner + hidden - eighth(shape, hidden)
	if op.Dropout {
		cost.Memory.Saved += apart(shape, op.Dim*shape.Tokens)
	}
	cost.Memory.Forward = 3*stream + whole + cost.Memory.Saved
	cost.peak(
		backwardPoint{stream + hidden + whole, 0, 0},                            // gradient of fc2's input
		backwardPoint{stream + inner, 0, 0},                                     // gradient of the activation's input: its output is freed
		backwardPoint{2*stream + inner - hidden + 2*eighth(shape, inner), 0, 0}, // gradient of fc1's input; in 8 bits by rows and columns
	)
}

// megatronHead adds the loss of core/fusions/fused_cross_entropy.py. It has logits and their fp32
// copy, which the exponentials and then their gradient overwrite. The head's backward gets the
// gradient's 16-bit copy.
func megatronHead(op modelgraph.Head, cost *Cost, shape *Shape) {
	nV, in := shape.Logits*op.Vocab, 2*op.Dim*shape.Logits
	whole := gatheredTokens(shape, in) // its buffer persists between steps (core/tensor_parallel/layers.py, get_global_memory_buffer)
	cost.Output, cost.FLOPs = 2*nV, float64(in)*float64(op.Vocab)
	cost.Memory.Loss = true
	cost.Memory.Saved = 4*nV + 9*shape.Logits
	cost.Memory.Saved += whole
	cost.Memory.Forward = cost.Memory.Saved + 2*nV
	cost.lossParts(2*nV, backwardPoint{2*nV + in - 4*nV, 0, 0})
}

// apart returns a GPU's part of a tensor's bytes with sequence parallelism.
func apart(shape *Shape, bytes int64) int64 { return bytes / max(1, shape.Sequence) }

// gatheredTokens returns the bytes of a tensor gathered before a product; 0 without sequence
// parallelism.
func gatheredTokens(shape *Shape, bytes int64) int64 {
	if shape.Sequence < 2 {
		return 0
	}
	return bytes
}

// megatronExperts adds a layer of routed experts (core/transformer/moe/moe_layer.py) with one
// grouped product for all of a GPU's experts (experts.py, TEGroupedMLP). Each GPU permutes its
// tokens, once per expert of each token, sends them to the GPUs with these experts, and sorts what
// it receives. It keeps:
//
//   - the router's scores in fp32
//   - the sorted input of fc1, fc1's output and the activation's output
//   - the received results before their sum (moe_utils.py, unpermute)
//
// Shared experts are a separate feed-forward network.
func megatronExperts(op modelgraph.MoE, cost *Cost, shape *Shape) {
	here, width := apart(shape, shape.Tokens), 2*op.Dim
	stream, sent := width*here, width*here*op.TopK
	input, hidden := width*shape.Routed, 2*op.Hidden*shape.Routed
	cost.Output = stream
	cost.FLOPs = 2 * float64(shape.Routed) * float64(3*op.Dim*op.Hidden)
	routing := here * (8*op.Experts + 8*op.TopK) // logits and probabilities; the map of tokens
	cost.Memory.Saved = routing + input + 3*hidden + sent - eighth(shape, input+hidden)
	if op.SharedHidden > 0 {
		shared := Cost{}
		megatronMLP(modelgraph.MLP{Dim: op.Dim, Hidden: op.SharedHidden, Gated: true}, &shared, shape)
		cost.Memory.Saved += shared.Memory.Saved
		cost.FLOPs += shared.FLOPs
	}
	cost.Memory.Forward = 2*stream + cost.Memory.Saved + max(sent+input, 2*input)
	cost.peak(
		backwardPoint{stream + sent + input + hidden, 0, 0},     // gradient of fc2's input
		backwardPoint{stream + 2*input + 2*hidden - sent, 0, 0}, // gradient of fc1's input
	)
}
