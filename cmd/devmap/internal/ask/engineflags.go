package ask

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/costmodel/serving/paged"
)

// ranked are the engines with ranks of tensor and pipeline parallelism.
var ranked = []string{costmodel.VLLM, costmodel.SGLang}

// servingFlags are those of an engine that serves.
var servingFlags = []flag{
	{
		name: "context", at: func(request *Request) any { return &request.serving.Context }, serves: true, on: onPlan, leftOut: "the most that fits",
		help: "Tokens of a sequence [the most that fits]", accepts: []string{"max-model-len", "ctx-size", "context-length"}, also: []string{"ctx_size", "num-ctx", "num_ctx", "n-ctx", "n_ctx", "context_length"},
	},
	{
		name: "sequences", at: func(request *Request) any { return &request.serving.Sequences }, serves: true, on: onPlan, leftOut: "1; vllm: 256 or 1024",
		help: "Sequences at a time [1; vllm: 256 or 1024]", accepts: []string{"max-num-seqs"}, also: []string{"parallel", "np", "n-parallel", "max_num_seqs", "max-running-requests"},
	},
	{
		name: "kv-type", at: func(request *Request) any { return &request.serving.KVType }, serves: true, on: onPlan, values: slices.Concat([]string{"auto"}, serving.CacheTypes(), paged.CacheTypes()), defaultValue: "auto",
		help: "Type of the KV cache; auto is 16 bits", accepts: []string{"kv-cache-dtype"}, also: []string{"cache-type-k", "ctk", "kv_cache_dtype"},
		meant: map[string]string{"fp16": "f16", "q8": "q8_0", "q4": "q4_0", "int8": "q8_0", "fp8_e4m3": "fp8"},
	},
	{
		name: "ubatch", at: func(request *Request) any { return &request.serving.UBatch }, serves: true, engines: []string{costmodel.LlamaCPP}, on: onPlan, defaultValue: "512", leftOut: "512",
		help: "Tokens of one pass of llama.cpp", also: []string{"ubatch-size", "ubatch_size", "ub"},
	},
	{
		name: "max-num-batched-tokens", at: func(request *Request) any { return &request.serving.BatchedTokens }, serves: true, engines: ranked, on: onPlan, leftOut: "by the GPU",
		help: "Tokens of one pass of vLLM or SGLang [by the GPU]", accepts: []string{"chunked-prefill-size"}, also: []string{"max_num_batched_tokens"},
	},
	{
		name: "enforce-eager", at: func(request *Request) any { return &request.serving.Eager }, serves: true, engines: ranked, on: onPlan,
		help: "No CUDA graphs", also: []string{"enforce_eager", "disable-cuda-graph"},
	},
	{
		name: "engine-version", at: func(request *Request) any { return &request.serving.EngineVersion }, serves: true, engines: ranked, on: onPlan,
		help: "Release of the engine, as 0.33 [the newest known]", also: []string{"engine_version", "vllm-version"},
	},
}

// Generation has the flags of a diffusion pipeline except --batch and --offload. Zero means the
// pipeline's default.
type Generation struct {
	Height, Width, Frames                            int64
	VAETiling, VAESlicing, CacheLatents              bool
	VAEPrecision                                     string
	CFGDegree, Ulysses, Ring, PipeFusion, FullyShard int64
	Component                                        string
}

// offloadModes lists diffusers' modes: one component, one module or one block at a time.
var offloadModes = []string{"model", "sequential", "group"}

// generationFlags are the flags for pipelines, folders with a model_index.json.
var generationFlags = []flag{
	ofPipeline("height", "Image height [the pipeline's default]", func(request *Request) any { return &request.Generation.Height }),
	ofPipeline("width", "Image width [the pipeline's default]", func(request *Request) any { return &request.Generation.Width }),
	ofPipeline("frames", "Video frames [the pipeline's default]", func(request *Request) any { return &request.Generation.Frames }),
	{name: "component", on: onPlan, help: "Plan one component of the pipeline", at: func(request *Request) any { return &request.Generation.Component }},
	{name: "vae-tiling", on: onPlan, help: "Decode one tile at a time", at: func(request *Request) any { return &request.Generation.VAETiling }},
	{name: "vae-slicing", on: onPlan, help: "Decode one image at a time", at: func(request *Request) any { return &request.Generation.VAESlicing }},
	{name: "cache-latents", on: onPlan, help: "Encode pictures before DreamBooth training", at: func(request *Request) any { return &request.Generation.CacheLatents }},
	{name: "vae-precision", on: onPlan, help: "VAE type: bf16 or fp32 [the pipeline's default]", leftOut: "the pipeline's own", at: func(request *Request) any { return &request.Generation.VAEPrecision }},
	ofPipeline("cfg-degree", "xDiT: GPUs for classifier-free guidance, 1 or 2 [1]", func(request *Request) any { return &request.Generation.CFGDegree }),
	ofPipeline("ulysses", "xDiT: GPUs that share the attention heads [1]", func(request *Request) any { return &request.Generation.Ulysses }),
	ofPipeline("ring", "xDiT: GPUs in ring attention [1]", func(request *Request) any { return &request.Generation.Ring }),
	ofPipeline("pipefusion", "xDiT: pipeline stages of transformer blocks [1]", func(request *Request) any { return &request.Generation.PipeFusion }),
	ofPipeline("fully-shard-degree", "xDiT: GPUs that shard transformer and T5 weights [1]", func(request *Request) any { return &request.Generation.FullyShard }),
}

func ofPipeline(name, help string, at func(request *Request) any) flag {
	return flag{name: name, on: onPlan, help: help, at: at, leftOut: "the pipeline's own"}
}
