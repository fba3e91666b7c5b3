// Package serve plans a decoder for an engine that serves: the longest context, and which device has
// which layers. [Solve] is for llama.cpp, whose blocks may be on the host, and [SolveRanks] for vLLM
// and SGLang, whose GPUs are ranks.
package serve
