package paged

import (
	"math"
	"slices"
	"strings"
)

// The releases whose rules differ. Since 0.21 the cache leaves room for CUDA graphs. 0.26 has the
// second model runner for most models, which counts none; 0.33 has it for all, and counts them.
var graphsCount, secondRunner = Version{0, 21}, Version{0, 33}

// secondEarly are the families with experts that have the second runner before 0.33 too; others with
// experts have the first (config/vllm.py, use_v2_model_runner).
var secondEarly = []string{"deepseek_v2", "deepseek_v3", "granitemoe", "qwen2_moe"}

// firstRunner reports the first model runner.
func (set *Settings) firstRunner(model *Model) bool {
	switch {
	case !set.Version.before(secondRunner):
		return false
	case set.Version.before(graphsCount):
		return true
	}
	return model.Experts > 0 && !slices.Contains(secondEarly, model.Family)
}

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
	last := end == len(model.Layers)
	rank := Rank{Weights: set.Weights(model, first, end), Other: set.communication(gpu) + set.More}
	rank.Activation = set.forward(model, first, end)
	if !set.Eager && !set.Version.before(graphsCount) {
		rank.Activation = max(rank.Activation, set.timed(model))
	}
	if last {
		rank.Activation = max(rank.Activation, set.sampling(model))
	}
	rank.Activation += set.workspace(model, first, end)
	if last && !set.Version.before(secondRunner) { // sample/penalties.py
		rank.Activation += set.Sequences * (4*model.Vocabulary + 4*divided(model.Vocabulary, 32))
	}
	if rank.Other < 0 { // a log with less than the prediction
		rank.Activation, rank.Other = max(0, rank.Activation+rank.Other), 0
	}
	rank.Graphs = set.graphs(model, end-first)
	rank.Cache = set.budget(gpu) - rank.Weights - rank.Activation - rank.Graphs - rank.Other
	return rank
}

// workspace32 is cuBLAS's workspace on Hopper, 32 MiB.
const workspace32 = 32 << 20

// hidden is the hidden state of all tokens of a pass.
func (set *Settings) hidden(model *Model) int64 { return set.Batched * model.Element * model.Width }

// forward is the peak of a pass over the layers: both halves of the widest feed-forward and its
// result, and four hidden states (three to five were alive in ten models on an H200). A stage of several
// has two more, for its neighbours. Latent attention expands 65,536 tokens of its cache
// (mla_attention.py, forward_impl).
func (set *Settings) forward(model *Model, first, end int) int64 {
	const chunk = 1 << 16
	var widest, expanded int64
	for i := first; i < end; i++ {
		layer := &model.Layers[i]
		widest, expanded = max(widest, layer.FeedForward), max(expanded, layer.Expanded)
	}
	states := int64(4)
	if set.Pipeline > 1 {
		states += 2
	}
	most := max(set.Batched*model.Element*(widest/set.Tensor), chunk*model.Element*expanded/set.Tensor)
	return most + states*set.hidden(model) + workspace32
}

// timed is the peak while torch.compile times kernels of the embedding, on its first start: a copy of
// the table, and two hidden states (torch/_dynamo/testing.py, rand_strided).
func (set *Settings) timed(model *Model) int64 {
	return model.Vocabulary*model.Element*model.Width/set.Tensor + 2*set.hidden(model)
}

// workspace are the two buffers of experts, which stay (fused_moe/modular_kernel.py). The kernels of
// MXFP4 have none.
func (set *Settings) workspace(model *Model, first, end int) int64 {
	var most int64
	if model.Quantized == "mxfp4" {
		return 0
	}
	for i := first; i < end; i++ {
		if layer := &model.Layers[i]; layer.Routed > 0 {
			width := layer.ExpertWidth
			if set.Experts == 0 {
				width /= set.Tensor
			}
			most = max(most, layer.Routed*(max(2*width, model.Width)+max(width, model.Width)))
		}
	}
	return set.Batched * model.Element * most
}

// sampling is the peak of the sampler, with the hidden states of all tokens and cuBLAS's workspace.
// The first runner has logits, logits in fp32, probabilities and numbers for its random choice, and a
// row of the vocabulary for each multiprocessor (v1/sample/ops/topk_topp_sampler.py,
// topk_topp_triton.py). The second has logits alone until 0.33. Then a second pass has logits in fp32,
// those that the first filter leaves, and probabilities (v1/worker/gpu/model_runner.py,
// _dummy_sampler_run).
func (set *Settings) sampling(model *Model) int64 {
	const multiprocessors = 132 // of an H100; others have fewer, up to 50 MiB less
	size := set.Sequences * model.Vocabulary
	peak := set.hidden(model) + workspace32 + model.Element*size
	if first := set.firstRunner(model); first || !set.Version.before(secondRunner) {
		peak += 12 * size
		if first {
			peak += 4 * multiprocessors * model.Vocabulary
		}
	}
	return peak
}

// graphs is the memory of CUDA graphs that the engine leaves room for. On an H200 the graphs of vLLM
// 0.26 took 0.70 GiB for 512 sequences at a time, half of it for 256, and 8.75 MiB for each layer. The
// first runner's estimate was 0.36 GiB and as much for each layer.
func (set *Settings) graphs(model *Model, layers int) int64 {
	const each, all, estimate, most = 8960 << 10, 717 << 20, 369 << 20, 512
	switch {
	case set.Eager || set.Version.before(graphsCount):
		return 0
	case set.firstRunner(model):
		return estimate + int64(layers)*each
	case set.Version.before(secondRunner):
		return 0
	}
	return all*min(set.Sequences, most)/most + int64(layers)*each
}

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

// vllmTables are the families whose classes in vLLM make the token table on every stage of a pipeline,
// and the head too, but for vllmLastHeads (model_executor/models, without a test of the rank).
var (
	vllmTables = []string{
		"bloom", "cohere", "cohere2", "dbrx", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "gpt2", "gptj", "gpt_oss",
		"granitemoe", "granitemoehybrid", "granitemoeshared", "internlm2", "jamba", "lfm2", "lfm2_moe", "mamba", "mamba2", "minicpm", "mixtral", "nemotron_h", "olmo_hybrid", "olmoe", "opt",
		"orion", "phimoe", "qwen2_moe", "qwen3_5", "qwen3_5_moe", "qwen3_moe", "qwen3_next", "stablelm", "zamba2",
	}
	vllmLastHeads = []string{"cohere", "cohere2", "lfm2", "lfm2_moe", "qwen3_5", "qwen3_5_moe"}
)
