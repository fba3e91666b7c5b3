// Package ops says what each op keeps and needs on a GPU: the tensors it
// saves for backward, its transients, its KV cache and its FLOPs.
//
// The rules are those of PyTorch's eager mode under Transformers 5.17, read
// from the allocations of a block (torch 2.11): a norm keeps its fp32 input,
// the normalised tensor and its output; attention keeps q, k, v, its output and
// the log-sum-exp; a gated MLP keeps gate, activation, up and product. Each op
// answers the questions of one interface (operation.go) in files of its name,
// and a row in one table (operations.go). Symbols in comments: N tokens of a
// micro-batch, h hidden, q = heads × head width, k = KV heads × head width, f
// FFN width, V vocabulary. In the code, element is the bytes of one in matrix
// products, hN a tensor of the hidden width, fN of the FFN's, nV the logits.
package ops
