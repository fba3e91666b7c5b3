// Package serving predicts the memory of engines that serve decoders: weights, the cache of keys and
// values, and buffers, for each device. [FromGGUF] reads what they depend on from a model, and
// [LlamaCPP] has the rules of llama.cpp.
package serving
