package ops

import "github.com/devmap-dev/devmap/costmodel"

// latentAttention is attention with latents (DeepSeek-V2, arXiv 2405.04434, section 2.1).
type latentAttention struct{ attention }

// cost follows modeling_deepseek_v3.py DeepseekV3Attention. The latents are normalized, then
// expanded to full heads before the kernel. The cache has the latents and the rotated part that all
// heads share.
func (op latentAttention) cost(shape *Shape) Cost {
	dims := op.geometry(shape)
	element, tokens := shape.elementBytes(), shape.Tokens
	nope := op.HeadDim - op.RopeDim
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	latent := (4 + 2*element) * tokens * (op.QRank + op.KVRank)    // kept as by a norm
	expanded := element * tokens * op.Heads * (nope + op.ValueDim) // v is a slice of it
	cost.Memory.Saved = latent + expanded + element*tokens*(dims.q+op.Heads*op.HeadDim) + element*tokens*dims.out + 4*op.Heads*tokens + 2*512 +
		2*shape.streamBytes()*shape.Length*op.RopeDim + shape.casts(4, op.Dim, shape.Weights)
	cost.Memory.Saved += op.copied(shape)
	if dims.by == scoresInMemory { // no log-sum-exp and no seeds
		cost.Memory.Saved += scoresSaved(op.attention, &dims, shape) - element*dims.repeated - 4*op.Heads*tokens - 2*512
	}
	cost.cache(dims, op.KVRank, op.RopeDim, shape)
	q := 2 * float64(tokens) * (float64(op.Dim)*float64(op.QRank) + float64(op.QRank)*float64(dims.q))
	if op.QRank == 0 {
		q = 2 * float64(tokens) * float64(op.Dim*dims.q)
	}
	kv := 2 * float64(tokens) * (float64(op.Dim)*float64(op.KVRank+op.RopeDim) + float64(op.KVRank)*float64(op.Heads)*float64(nope+op.ValueDim))
	cost.FLOPs = q + kv + 2*float64(tokens)*float64(dims.out*op.Dim) + float64(tokens)*float64(shape.Length)*float64(dims.q+dims.out)
	if op.IndexHeads > 0 {
		op.indexed(&cost, &dims, shape)
	} else if op.masked(shape) && shape.Masked {
		cost.Memory.Saved += element * dims.masked
	}
	cost.attentionPeaks(op.attention, dims, shape)
	if op.IndexHeads > 0 {
		inside := element*tokens*(op.QRank+op.KVRank+2*dims.q) + op.indexer(shape) // q before and after its rotation
		if shape.Train {
			inside += element * tokens * (dims.q + op.Heads*(nope+op.ValueDim)) // the keys, and what they and the values are parts of
		} else {
			inside += 2*shape.streamBytes()*op.Dim*tokens + cost.Memory.KV
		}
		cost.Memory.Forward = max(cost.Memory.Forward, inside)
	}
	return cost
}

// copied returns the bytes of the output's copy: torch.cat makes q with heads as the outer
// dimension (see [copiesOut]).
func (op latentAttention) copied(shape *Shape) int64 {
	if dims := op.geometry(shape); dims.by == flashKernel && shape.Attention == "" {
		return shape.elementBytes() * shape.Tokens * dims.out
	}
	return 0
}

// indexed adds the cost of an indexer (modeling_deepseek_v32.py, DeepseekV32Indexer): its products,
// and each layer's own mask, which the kernel keeps. Caches have full keys and values, and the
// indexer's keys.
func (op latentAttention) indexed(cost *Cost, dims *geo, shape *Shape) {
	tokens, wide := float64(shape.Tokens), float64(op.IndexHeads)*float64(op.IndexDim)
	cost.FLOPs += 2 * tokens * (float64(op.QRank)*wide + float64(op.Dim)*float64(op.IndexDim+op.IndexHeads) + float64(shape.Length)*wide)
	cost.Memory.Saved += shape.elementBytes() * dims.masked
	cost.cache(*dims, dims.q+op.IndexDim, dims.v, shape)
}

// indexer returns the most that the indexer has at once. Its queries are there as projected, as
// rotated and joined. Scores of every head and their product with the scale are in fp32. Before,
// torch.matmul copies the keys for each query if there are several sequences, whose dimension it
// cannot join with that of queries (aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl).
func (op latentAttention) indexer(shape *Shape) int64 {
	scores := 4 * op.IndexHeads * shape.Tokens * shape.Length
	first := scores
	if shape.elementBytes() < 4 {
		first += 4 * op.IndexHeads * op.IndexDim * shape.Tokens
	}
	if shape.Batch > 1 {
		first += 4 * op.IndexDim * shape.Tokens * shape.Length
	}
	return shape.elementBytes()*shape.Tokens*op.IndexHeads*(2*op.IndexDim+op.RopeDim) + max(first, 2*scores)
}

func (op latentAttention) freeze(cost *Cost, shape *Shape) {
	cost.Memory.Saved -= 2*shape.elementBytes()*shape.Tokens*(op.QRank+op.KVRank) + op.copied(shape)
	frozenOther(cost, shape)
}

func (latentAttention) slack(*Shape) int64 { return 0 }

// attend keeps the kernel's products with the linear layers'.
func (latentAttention) attend(_ *Shape, forward, backward costmodel.Pass) (costmodel.Pass, costmodel.Pass) {
	return forward, backward
}
