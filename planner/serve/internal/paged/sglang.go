package paged

import (
	"math"
	"slices"
	"strconv"
)

// Fraction is the part of a GPU's memory that the engine may use.
func (set *Settings) Fraction(model *Model, gpu GPU) float64 {
	if set.Engine == SGLang {
		return sglangFraction(set, model, gpu)
	}
	return set.Share
}

// sglangFraction is the part of a GPU for weights and cache if the user sets none, and the tokens of
// a pass: what is left is for activations and graphs (SGLang 0.5.23,
// arg_groups/memory_hook.py, handle_gpu_memory_settings).
func sglangFraction(set *Settings, model *Model, gpu GPU) float64 {
	if set.Share > 0 {
		return set.Share
	}
	total := float64(gpu.Total >> 20)
	decodes := sglangDecodes(gpu, set.Tensor)
	if set.Sequences > 0 {
		decodes = min(decodes, set.Sequences)
	}
	reserved := 512 + 1.5*float64(max(set.Batched, 2048)) + float64(set.Tensor*set.Pipeline)/8*1024
	if !set.Eager {
		reserved += 2 * float64(decodes)
		switch {
		case model.latent():
			if set.Pipeline == 1 {
				reserved += 1536
			}
		case !model.sglangImages() || slices.Contains(sglangPrefilled, model.Family):
			reserved += 8 * float64(sglangPrefills(set.Batched, set.Pipeline))
		}
	}
	const large, floor = 60 << 10, 10 << 10
	if total > large {
		reserved = max(reserved, floor)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat((total-reserved)/total, 'f', 3, 64), 64)
	return rounded * model.sglangTower()
}

// sglangText are the families whose towers SGLang leaves out, if --enable-multimodal is not given
// (configs/model_config.py, mm_disabled_models).
var sglangText = []string{"gemma3", "llama4", "step3_vl"}

// sglangPrefilled are the families that read images and have prefill graphs anyway
// (multimodal_breakable_cuda_graph_supported_model_archs).
var sglangPrefilled = []string{"cohere2_vision", "paddleocr_vl", "qwen3_5", "qwen3_5_moe"}

// sglangDepth are the families whose config has no num_hidden_layers for the tower, but a depth.
// SGLang reads the first alone, and takes 24 without it.
var sglangDepth = []string{"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe"}

// sglangImages reports a model whose images SGLang reads.
func (model *Model) sglangImages() bool {
	return model.Tower && !slices.Contains(sglangText, model.Family)
}

// sglangTower is the factor for a tower: a twentieth less, and a tenth less for each size of a ViT-L/14
// more (adjust_mem_fraction_for_vlm).
func (model *Model) sglangTower() float64 {
	if !model.sglangImages() || model.TowerWidth == 0 {
		return 1
	}
	const layers, width = 24, 1024
	size := float64(model.TowerLayers) / layers
	if slices.Contains(sglangDepth, model.Family) {
		size = 1
	}
	size *= float64(model.TowerWidth*model.TowerWidth) / (width * width)
	return 0.95 * max(0.8, min(1.05, 1-0.1*(size-1)))
}

// sglangDecodes is the largest batch of a decode graph.
func sglangDecodes(gpu GPU, tensor int64) int64 {
	several := func(few, many int64) int64 {
		if tensor < 4 {
			return few
		}
		return many
	}
	switch gib := gpu.Total >> 30; {
	case gib < 20:
		return 8
	case gib < 35:
		return several(48, 160)
	case gib < 60:
		return several(32, 160)
	case gib < 160:
		return several(256, 512)
	}
	return 512
}

// SGLangTokens are the tokens of one pass if the user sets none (chunked_prefill_size).
func SGLangTokens(gpu GPU) int64 {
	switch gib := gpu.Total >> 30; {
	case gib < 20:
		return 2048
	case gib < 60:
		return 4096
	case gib < 160:
		return 8192
	}
	return 16384
}

// sglangPrefills is the number of prefill graphs (arg_groups/cuda_graph_hook.py,
// generate_prefill_cuda_graph_batch_sizes): sizes in steps that grow.
func sglangPrefills(most, stages int64) (count int64) {
	if stages > 1 {
		return 0 // opt-in under pipeline parallelism
	}
	for _, steps := range [][3]int64{{4, 32, 4}, {48, 256, 16}, {288, 512, 32}, {576, 1024, 64}, {1280, 4096, 256}, {4608, most, 512}} {
		if end := min(steps[1], most); end >= steps[0] {
			count += (end-steps[0])/steps[2] + 1
		}
	}
	return count
}

// sglangSliding are the families whose sliding layers keep fewer tokens
// (configs/model_config.py, is_hybrid_swa). In others each layer keeps all tokens.
var sglangSliding = []string{"gpt_oss", "llama4", "llama4_text", "mimo_v2_flash", "gemma4", "gemma4_text", "step3p5"}

// A sliding layer keeps sglangCached tokens for sglangParts of the others (swa_full_tokens_ratio).
const sglangCached, sglangParts = 4, 5

// sglangPool is the cache of SGLang: a slot for each token, with all layers of a rank.
func sglangPool(set *Settings, model *Model) *Pool {
	pool := &Pool{groups: []Cache{{Kind: Full, Block: 1}}, of: make([]int, len(model.Layers)), pages: make([]int64, len(model.Layers)), parts: sglangParts}
	for i := range model.Layers {
		cache := set.cache(model, i)
		switch {
		case cache.Kind == NoCache || cache.Kind == State:
			pool.of[i] = -1
		case (cache.Kind == Sliding || cache.Kind == Chunked) && slices.Contains(sglangSliding, model.Family):
			pool.pages[i] = sglangCached * cache.token()
		default:
			pool.pages[i] = sglangParts * cache.token()
		}
	}
	return pool
}

// sglangStates are the bytes that the states of recurrent layers take of what is left for the cache:
// whole slots in a fixed part (mem_cache/kv_cache_configurator.py, _handle_max_mamba_cache).
func sglangStates(set *Settings, model *Model, counts []int, left int64) int64 {
	var most, at int64
	for _, count := range counts {
		var slot int64
		for i := at; i < at+int64(count); i++ {
			if cache := set.cache(model, int(i)); cache.Kind == State {
				slot += cache.Bytes
			}
		}
		most = max(most, slot)
		at += int64(count)
	}
	if most == 0 || left <= 0 {
		return 0
	}
	const ratio = 0.9 // mamba_full_memory_ratio
	budget := int64(float64(left) * ratio / (1 + ratio))
	return ((budget-most)/most + 1) * most
}

// sglang are the ranks of SGLang (mem_cache/kv_cache_configurator.py, _profile_available_bytes). What
// is free before and after loading is the least of all ranks.
func sglangRanks(set *Settings, model *Model, pool *Pool, gpus []GPU, counts []int) (int64, []Rank) {
	ranks := make([]Rank, len(counts))
	before, after := int64(math.MaxInt64), int64(math.MaxInt64)
	at := 0
	for stage, count := range counts {
		free := min(gpus[stage].Free, gpus[stage].Total-driver) - set.communication(gpus[stage]) - set.More
		ranks[stage] = Rank{Weights: set.Weights(model, at, at+count), Other: gpus[stage].Free - free}
		before, after = min(before, free), min(after, free-ranks[stage].Weights)
		at += count
	}
	blocks, states := sglangSlots(set, model, pool, gpus[0], counts, before, after)
	at = 0
	for stage, count := range counts {
		ranks[stage].Cache = pool.Bytes(max(0, blocks), at, at+count) + states
		ranks[stage].Activation = max(0, gpus[stage].Free-ranks[stage].Other-ranks[stage].Weights-ranks[stage].Cache)
		at += count
	}
	return blocks, ranks
}

// sglangReserved are bytes for images (mm_runtime_reservation_gb): a cache of their embeddings, or what
// Qwen3-VL has on a large Hopper GPU (arg_groups/model_overrides/qwen3_vl.py).
func (model *Model) sglangReserved(gpu GPU) int64 {
	const large, blackwell = 60 << 30, 160 << 30
	switch {
	case !model.sglangImages():
		return 0
	case (model.Family == "qwen3_vl" || model.Family == "qwen3_vl_moe") && gpu.Fabric && gpu.Total >= large && gpu.Total < blackwell:
		return 1 << 30
	}
	return 100 << 20
}

// sglangSlots are the tokens of the cache, and the bytes of states. before and after are free bytes
// before and after loading.
func sglangSlots(set *Settings, model *Model, pool *Pool, gpu GPU, counts []int, before, after int64) (slots, states int64) {
	rest := after - int64(float64(before)*(1-sglangFraction(set, model, gpu)))
	rest -= model.sglangReserved(gpu)
	states = sglangStates(set, model, counts, rest)
	slots = math.MaxInt64
	at := 0
	for _, count := range counts {
		if in, ok := pool.In(rest-states, at, at+count); ok {
			slots = min(slots, in)
		}
		at += count
	}
	return slots, states
}

// driver is what the CUDA context takes before the engine measures free memory.
const driver = 512 << 20

// SGLangStages are the layers of each stage if the user sets none (distributed/utils.py,
// get_pp_indices): the last stages have one more.
func SGLangStages(layers, stages int) []int {
	counts := make([]int, stages)
	for i := range counts {
		counts[i] = layers / stages
		if i >= stages-layers%stages {
			counts[i]++
		}
	}
	return counts
}
