package paged

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// GPU is what the engine finds of one GPU.
type GPU struct {
	Total          int64   // bytes of its memory
	Free           int64   // bytes that are free before the engine starts
	BytesPerSecond float64 // of its memory; 0: unknown
	Fabric         bool    // it reduces over a switch (NVLink SHARP): Hopper and later servers
}

// Settings are those of an engine with ranks.
type Settings struct {
	Engine  Engine
	Version Version
	Degrees
	Context   int64 // tokens of the longest sequence (--max-model-len)
	Sequences int64 // the most at a time (--max-num-seqs)
	Batched   int64 // tokens of one pass (--max-num-batched-tokens)
	// Share of a GPU's memory that the engine may use (--gpu-memory-utilization,
	// --mem-fraction-static).
	Share        float64
	CacheElement int64 // bytes of a number in the cache; 0: as activations
	Eager        bool  // no CUDA graphs (--enforce-eager)
	Machete      bool  // 4-bit weights are multiplied by Machete: on Hopper
	Block        int64 // tokens of a block of the cache
	// More are bytes of each rank that a log had and the rules do not know ([Log]).
	More int64
}

// Engine is an engine with a paged cache.
type Engine int

// The engines.
const (
	VLLM Engine = iota
	SGLang
)

// Version is a release: 0.33 is {0, 33}.
type Version [2]int

func (version Version) before(other Version) bool {
	return version[0] < other[0] || version[0] == other[0] && version[1] < other[1]
}

// Rank is what one GPU holds, in bytes.
type Rank struct {
	Weights    int64
	Activation int64 // the peak of a pass, and buffers of the sampler
	Graphs     int64 // CUDA graphs
	Other      int64 // libraries and communication
	// Cache is what is left of the budget. It is negative if the rest is larger.
	Cache int64
}

// Total is the sum.
func (rank Rank) Total() int64 {
	return rank.Weights + rank.Activation + rank.Graphs + rank.Other + rank.Cache
}

// Weights are the bytes of the weights of a rank with the layers from first to end.
func (set *Settings) Weights(model *Model, first, end int) int64 {
	sum := model.Rope
	for i := first; i < end; i++ {
		layer := &model.Layers[i]
		heads := layer.Cache.Heads
		if layer.Cache.Kind == Latent || layer.Cache.Kind == State {
			heads = 0
		}
		weights := layer.Weights
		if model.Quantized == "mxfp4" && layer.ExpertWidth > 0 && set.Experts == 0 {
			weights.Experts = set.rounded(weights.Experts, layer.ExpertWidth)
		}
		sum += weights.rank(set.Degrees, heads, model.Experts) + layer.Unpacked/set.Tensor
		if set.Machete {
			const packed, unpacked = 4, 16
			sum += layer.Zeros / set.Tensor * (unpacked - packed) / packed
		}
	}
	return sum + set.ends(model, first == 0, end == len(model.Layers))
}

// ends are the bytes of what is before and after the layers. The last stage has a shared table too.
// Some of vLLM's models have the table or the head on every stage, where it has no use.
func (set *Settings) ends(model *Model, first, last bool) (sum int64) {
	if first {
		sum += model.First.rank(set.Degrees, 0, 0)
	}
	if last {
		sum += model.Last.rank(set.Degrees, 0, 0)
	}
	everywhere := set.Engine == VLLM && slices.Contains(vllmTables, model.Family)
	tied := model.Table != Weights{}
	if !first && (everywhere || tied && last) {
		table := Weights{Vocabulary: model.First.Vocabulary}
		sum += table.rank(set.Degrees, 0, 0)
	}
	if everywhere && !last && !tied && !slices.Contains(vllmLastHeads, model.Family) {
		head := Weights{Vocabulary: model.Last.Vocabulary}
		sum += head.rank(set.Degrees, 0, 0)
	}
	return sum
}

// rounded are the bytes of experts in MXFP4, whose width on a rank is rounded up
// (fused_moe/oracle/mxfp4.py).
func (set *Settings) rounded(bytes, width int64) int64 {
	multiple := int64(64)
	if set.Version.before(secondRunner) {
		multiple = 128
	}
	part := divided(divided(width, set.Tensor), multiple) * multiple
	return bytes / width * part * set.Tensor
}

// Read are the bytes that a rank reads for one token of one sequence: its weights, of the experts
// those that the token uses, and the cache of the sequence.
func (set *Settings) Read(model *Model, first, end int) int64 {
	sum := set.Weights(model, first, end) - model.Rope
	if first == 0 { // of the table one row
		sum -= model.First.Vocabulary / set.Tensor
	}
	for i := first; i < end; i++ {
		layer := &model.Layers[i]
		experts := Weights{Experts: layer.Weights.Experts}
		sum -= int64((1 - layer.Read) * float64(experts.rank(set.Degrees, 0, model.Experts)))
		cache := set.cache(model, i)
		switch cache.Kind {
		case NoCache:
		case State:
			sum += cache.Bytes
		case Sliding, Chunked:
			sum += min(cache.Window, set.Context) * cache.token()
		default:
			sum += set.Context * cache.token()
		}
	}
	return sum
}

// Split is what each stage holds for so many layers, and the blocks of the cache: those of the rank
// with the fewest. Fewer than two start no engine.
func (set *Settings) Split(model *Model, pool *Pool, gpus []GPU, counts []int) (blocks int64, ranks []Rank) {
	if set.Engine == SGLang {
		return sglangRanks(set, model, pool, gpus, counts)
	}
	return set.vllmSplit(model, pool, gpus, counts)
}

// Stages are the layers of each stage if the user sets none.
func (set *Settings) Stages(layers, stages int) []int {
	if set.Engine == SGLang {
		return SGLangStages(layers, stages)
	}
	return VLLMStages(layers, stages)
}

// Pool is the cache of the model's layers, on one rank of tensor parallelism.
func (set *Settings) Pool(model *Model) (*Pool, error) {
	if set.Engine == SGLang {
		return sglangPool(set, model), nil
	}
	layers := make([]Cache, len(model.Layers))
	largest, token := int64(0), int64(0)
	for i := range model.Layers {
		layers[i] = set.cache(model, i)
		if layers[i].Kind == State {
			largest = max(largest, layers[i].Bytes)
		} else {
			token = max(token, layers[i].token())
		}
	}
	block := set.Block
	if largest > 0 && token > 0 { // platforms/interface.py, _align_hybrid_block_size
		align := block
		for i := range model.Layers {
			switch layer := &model.Layers[i]; {
			case layer.Delta: // chunks of a delta rule (mamba/abstract.py, get_mamba_prefill_checkpoint_alignment)
				align = max(align, 64)
			case layer.Cache.Kind == Latent:
				align = max(align, 128)
			}
		}
		block = max(block, align*divided(largest, align*token))
		largest = block * token
	}
	for i := range layers {
		layers[i].Block = block
		if layers[i].Kind == State {
			layers[i].Bytes = largest
		}
	}
	return NewPool(layers)
}

func (model *Model) latent() bool {
	for i := range model.Layers {
		if model.Layers[i].Cache.Kind == Latent {
			return true
		}
	}
	return false
}

// cache is the cache of a layer on one rank.
func (set *Settings) cache(model *Model, i int) Cache {
	cache := model.Layers[i].Cache
	switch cache.Kind {
	case NoCache:
	case State:
		cache.Bytes /= set.Tensor
	case Latent:
	default:
		cache.Heads = max(1, cache.Heads/set.Tensor)
	}
	if set.CacheElement > 0 && cache.Kind != State {
		cache.Element = set.CacheElement
	}
	return cache
}

// Request is the longest request. Batches are computed at a time: one more than there are stages
// (config/vllm.py, max_concurrent_batches). If layers with and without attention are mixed, prefixes are
// cached: a request has two states of a layer, and three if the kernels give the one before the last
// block too (models/config.py, MambaModelConfig).
func (set *Settings) Request(model *Model) Request {
	request := Request{Length: set.Context, InFlight: (set.Pipeline + 1) * set.Batched}
	attends := false
	for i := range model.Layers {
		layer := &model.Layers[i]
		switch layer.Cache.Kind {
		case State:
			request.States = max(request.States, 2)
			if layer.Chunked {
				request.States = 3
			}
		case NoCache:
		default:
			attends = true
		}
	}
	if !attends {
		request.States = 1
	}
	return request
}

// budget is what the engine may use of a GPU.
func (set *Settings) budget(gpu GPU) int64 { return int64(math.Ceil(float64(gpu.Total) * set.Share)) }

// CacheTypes lists the types of the cache that the engines have in addition to auto, that of
// activations.
func CacheTypes() []string { return []string{"fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16"} }

// ParseVersion reads a release, as 0.33 or 0.33.1.
func ParseVersion(text string) (version Version, err error) {
	if count, err := fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d", &version[0], &version[1]); count < 2 || version[0] < 0 || version[1] < 0 {
		return version, fmt.Errorf("%q is no release, as 0.33: %w", text, err)
	}
	return version, nil
}

// String is the release, as 0.33.
func (version Version) String() string { return fmt.Sprintf("%d.%d", version[0], version[1]) }

// PerToken are the bytes of a token in the cache of each layer of a rank.
func (set *Settings) PerToken(model *Model) []int64 {
	bytes := make([]int64, len(model.Layers))
	for i := range bytes {
		if cache := set.cache(model, i); cache.Kind != NoCache && cache.Kind != State {
			bytes[i] = cache.token()
		}
	}
	return bytes
}
