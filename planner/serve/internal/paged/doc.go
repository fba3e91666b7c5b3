// Package paged predicts the memory of engines that serve with a paged KV cache: vLLM and SGLang.
// They split a model into ranks of tensor and pipeline parallelism. What weights, activations and
// graphs leave of a GPU's budget is the cache.
package paged
