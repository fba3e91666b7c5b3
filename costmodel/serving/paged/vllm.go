package paged

import (
	"math"
	"strings"
)

// counted is the first release that subtracts CUDA graphs from the cache, and secondRunner the first
// whose second model runner is the default.
var counted, secondRunner = Version{0, 21}, Version{0, 33}

// vllmSplit are the ranks of vLLM. Each has as many blocks as the one with the fewest.
func (set *Settings) vllmSplit(model *Model, pool *Pool, gpus []GPU, counts []int) (int64, []Rank) {
	blocks, at := int64(math.MaxInt64), 0
	ranks := make([]Rank, len(counts))
	for stage, count := range counts {
		ranks[stage] = set.Rank(model, gpus[stage], at, at+count)
		if in, ok := pool.In(ranks[stage].Cache, at, at+count); ok {
			blocks = min(blocks, in)
		}
		at += count
	}
	at = 0
	for stage, count := range counts {
		ranks[stage].Cache = pool.Bytes(max(0, blocks), at, at+count)
		at += count
	}
	return blocks, ranks
}

// Rank is a rank of vLLM (v1/worker/gpu_worker.py, determine_available_memory).
func (set *Settings) Rank(model *Model, gpu GPU, first, end int) Rank {
	rank := Rank{Weights: set.Weights(model, first, end), Other: set.communication(gpu) + set.More}
	rank.Activation = set.forward(model, first, end)
	if end == len(model.Layers) {
		rank.Activation = max(rank.Activation, set.sampling(model))
	}
	rank.Activation += set.workspace(model, first, end)
	if !set.Version.before(secondRunner) && end == len(model.Layers) {
		rank.Activation += set.Sequences * (4*model.Vocabulary + 4*divided(model.Vocabulary, 32)) // sample/penalties.py
	}
	if !set.Version.before(counted) && !set.Eager {
		rank.Graphs = set.graphs(end - first)
	}
	rank.Cache = set.budget(gpu) - rank.Weights - rank.Activation - rank.Graphs - rank.Other
	return rank
}

// forward is the peak of a pass over the layers: both halves of the widest feed-forward, its
// result, and about five hidden states; a stage of several has two more for its neighbours.
func (set *Settings) forward(model *Model, first, end int) int64 {
	var widest int64
	for i := first; i < end; i++ {
		widest = max(widest, model.Layers[i].FeedForward)
	}
	hidden := int64(5)
	if set.Pipeline > 1 {
		hidden += 2
	}
	return set.Batched * model.Element * (widest/set.Tensor + hidden*model.Width)
}

// workspace are the buffers of experts, which stay (fused_moe/modular_kernel.py).
func (set *Settings) workspace(model *Model, first, end int) int64 {
	var most int64
	for i := first; i < end; i++ {
		most = max(most, model.Layers[i].Routed)
	}
	return set.Batched * model.Element * most
}

// sampling is the peak of the sampler: logits, logits in fp32, those that the first filter leaves,
// and probabilities, and two hidden states of all tokens. The first runner filters in
// place, and has numbers for its random choice, and a row of the vocabulary for each multiprocessor
// (v1/sample/ops/topk_topp_sampler.py, topk_topp_triton.py).
func (set *Settings) sampling(model *Model) int64 {
	const multiprocessors = 132 // of an H100; others have fewer, up to 50 MiB less
	size := set.Sequences * model.Vocabulary
	peak := (model.Element+12)*size + 2*set.Batched*model.Element*model.Width
	if set.Version.before(secondRunner) {
		peak += 4 * multiprocessors * model.Vocabulary
	}
	return peak
}

// graphs is the memory of CUDA graphs: the kernels of each layer, in graphs of 51 sizes.
func (set *Settings) graphs(layers int) int64 { return int64(layers) * 27 << 20 }

// communication is memory outside of PyTorch, as vLLM 0.19 printed it on H100
// (fixtures/measured/vllm_rows.json): 0.24 to 0.26 GiB on one GPU, 0.07 in a stage, and 2.06 to 2.21
// with tensor parallelism, whose reductions use symmetric memory. Two RTX 4090 printed 0.25.
func (set *Settings) communication(gpu GPU) int64 {
	switch {
	case set.Tensor > 1 && gpu.Fabric:
		return 2180 << 20
	case set.Tensor == 1 && set.Pipeline > 1:
		return 70 << 20
	}
	return 256 << 20
}

// VLLMDefaults are the tokens of a pass and the sequences at a time of vllm serve
// (engine/arg_utils.py, get_batch_defaults), for a GPU by its name and compute capability. A GB10 counts
// as a small GPU.
func VLLMDefaults(gpu GPU, name, capability string) (batched, sequences int64) {
	const large, huge, gb10 = 70 << 30, 160 << 30, "12.1"
	switch {
	case gpu.Total >= huge:
		return 16384, 1024
	case gpu.Total >= large && !strings.Contains(strings.ToLower(name), "a100") && capability != gb10:
		return 8192, 1024
	}
	return 2048, 256
}

// VLLMStages are the layers of each stage if the user sets none (distributed/utils.py,
// get_pp_indices).
func VLLMStages(layers, stages int) []int {
	counts := make([]int, stages)
	for i := range counts {
		counts[i] = layers / stages
	}
	for i := range layers % stages {
		counts[stages-2-i]++
	}
	return counts
}
