// Package ops says what each op keeps and needs on a GPU: the tensors it
// saves for backward, its transients, its KV cache and its FLOPs.
//
// The rules are those of PyTorch's eager mode under Transformers 5.17, read
// from the allocations of a block (torch 2.11): a norm keeps its fp32 input,
// the normalised tensor and its output; attention keeps q, k, v, its output
// and the log-sum-exp; a gated MLP keeps gate, activation, up and product.
// One file per op. Symbols in comments: N tokens of a micro-batch, h hidden,
// q = heads × head width, k = KV heads × head width, f FFN width, V
// vocabulary; e bytes an element in matrix products, r in the residual
// stream.
package ops
