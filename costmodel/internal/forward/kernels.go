package forward

import "strings"

// kernels are the library calls of a forward: each with its result, its workspace and its work.
type kernels struct {
	memory
	flops    float64
	gpus     int64  // GPUs that share the tokens
	ring     int64  // GPUs that keys and values go round
	stage    *Stage // the blocks that run; nil: all
	cacheKV  bool   // keys and values stay with their attention
	streamed bool   // weights exist only while their module runs
}

// weight is a module's weights while it runs, if they are not there before.
func (k *kernels) weight(mod module, name string) *value {
	if !k.streamed {
		return nil
	}
	return k.new(elements(mod.shapes[mod.in(name).path+".weight"]) + mod.out(name))
}

// linear is nn.Linear of so many rows.
func (k *kernels) linear(mod module, name string, rows int64) *value {
	in, out := mod.inward(name), mod.out(name)
	k.flops += 2 * float64(rows) * float64(in) * float64(out)
	k.traffic += float64(k.width) * (float64(rows)*float64(in) + float64(in)*float64(out))
	weight := k.weight(mod, name)
	result := k.new(rows * out)
	k.drop(weight)
	return result
}

// layerNorm is native_layer_norm: the result, and an unused mean and deviation a row.
func (k *kernels) layerNorm(rows, dim int64) *value {
	out := k.new(rows * dim)
	mean, deviation := k.single(rows), k.single(rows)
	k.drop(mean, deviation)
	return out
}

// rmsNorm is torch.nn.RMSNorm: one kernel (_fused_rms_norm), and a deviation a row.
func (k *kernels) rmsNorm(elements, dim int64) *value {
	out := k.new(elements)
	k.drop(k.single(elements / dim))
	return out
}

// ownRMSNorm is diffusers' RMSNorm (normalization.py): the squares in single
// precision, the product too until the weight comes.
func (k *kernels) ownRMSNorm(elements, dim int64) *value {
	upcast := k.single(elements)
	square := k.single(elements)
	k.drop(upcast)
	variance := k.single(elements / dim)
	k.drop(square)
	raised := k.single(elements / dim)
	root := k.single(elements / dim)
	k.drop(raised)
	scaled := k.single(elements)
	k.drop(root)
	if k.width < 4 {
		rounded := k.new(elements)
		k.drop(scaled)
		scaled = rounded
	}
	out := k.new(elements)
	k.drop(scaled, variance)
	return out
}

// scaleShift is x * (1 + scale) + shift; x is a temporary, freed after the product.
func (k *kernels) scaleShift(normed *value, batch, elements, dim int64) *value {
	onePlus := k.new(batch * dim)
	scaled := k.new(elements)
	k.drop(normed, onePlus)
	out := k.new(elements)
	k.drop(scaled)
	return out
}

// rotated is apply_rotary_emb (embeddings.py) with real cosines and sines: four
// tensors in single precision and the turned one.
func (k *kernels) rotated(elements int64) *value {
	negative := k.new(elements / 2)
	turned := k.new(elements)
	k.drop(negative)
	upcast := k.single(elements)
	cosine := k.single(elements)
	k.drop(upcast)
	upcast = k.single(elements)
	sine := k.single(elements)
	k.drop(upcast)
	total := k.single(elements)
	k.drop(cosine, sine)
	out := k.new(elements)
	k.drop(total, turned)
	return out
}

// attend is scaled_dot_product_attention without a mask and without
// gradients, as one GPU runs it, or, of queries' own keys, as xDiT does.
func (k *kernels) attend(batch, heads, queries, keys, dim int64) *value {
	if queries == keys && k.gpus > 1 {
		return k.usp(usp{image: batch * queries * dim, batch: batch, dim: dim, heads: heads, fill: k.gpus > k.ring})
	}
	out := k.kernel(batch*queries*dim, 0)
	k.flops += 4 * float64(batch) * float64(queries) * float64(keys) * float64(dim)
	return out
}

// kernel is cuDNN's, which torch 2.11 prefers on Hopper (sdp_utils.cpp: check_prefer_cudnn_attention):
// the result, and with logarithms the log-sums. A seed, an offset and a workspace take a quantum each.
func (k *kernels) kernel(elements, logarithms int64) *value {
	var sums *value
	if logarithms > 0 {
		sums = k.single(logarithms)
	}
	seed, offset := k.alloc(1), k.alloc(1)
	out := k.new(elements)
	k.drop(k.alloc(1), seed, offset, sums)
	return out
}

// split copies a part of a batch's rows, strided by sequence; one sequence's part is a view.
func (k *kernels) split(whole *value, batch, elements int64) *value {
	if batch == 1 {
		return whole.hold()
	}
	return k.new(elements)
}

// tape is a forward at work: its kernels, and the blocks that ran.
type tape struct {
	kernels
	passed  int     // blocks that were passed
	moments []int64 // the peak of each block that ran
	grouped bool    // a block's weights exist only while it runs
}

// blocks runs a list's blocks in order, each with its weights; under a stage only its own.
func (t *tape) blocks(root module, list string, run func(block module)) {
	for i := range root.count(list) {
		t.passed++
		if stage := t.stage; stage != nil && (t.passed <= stage.First || t.passed > stage.End) {
			continue
		}
		block, before := root.at(list, i), t.peak
		t.peak = t.live
		weights := t.blockWeights(block)
		run(block)
		t.drop(weights)
		t.moments = append(t.moments, t.peak)
		t.peak = max(t.peak, before)
	}
}

// blockWeights are a block's weights while it runs, if they are not there before.
func (t *tape) blockWeights(mod module) *value {
	if !t.grouped {
		return nil
	}
	total := int64(0)
	for name, shape := range mod.shapes {
		if strings.HasPrefix(name, mod.path+".") {
			total += elements(shape)
		}
	}
	return t.new(total)
}
