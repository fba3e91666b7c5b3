package ask

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/planner/serve"
)

// gguf are the engines of GGUF files, ranked those with ranks of tensor and pipeline parallelism.
var gguf, ranked = []string{costmodel.LlamaCPP}, []string{costmodel.VLLM, costmodel.SGLang}

// servingFlags are those of an engine that serves. The help of plan has them, and docs/engines/llamacpp.md those
// of estimate.
var servingFlags = []flag{
	{
		name: "context", at: func(request *Request) any { return &request.serving.Context }, serves: true, again: true, on: placing, hidden: onCheck | onEstimate, leftOut: "the most that fits",
		help: "Tokens of a sequence [the most that fits]", accepts: []string{"max-model-len", "ctx-size", "context-length"}, also: []string{"ctx_size", "num-ctx", "num_ctx", "n-ctx", "n_ctx", "context_length"},
	},
	{
		name: "sequences", at: func(request *Request) any { return &request.serving.Sequences }, serves: true, again: true, on: placing, hidden: onCheck | onEstimate, leftOut: "1; vllm: 256 or 1024",
		help: "Sequences at a time [1 or more]", accepts: []string{"max-num-seqs", "max-running-requests"}, also: []string{"parallel", "np", "n-parallel", "max_num_seqs"},
	},
	{
		name: "kv-type", at: func(request *Request) any { return &request.serving.KVType }, serves: true, again: true, on: working, hidden: onCheck | onEstimate, values: slices.Concat(serve.RankCacheTypes(), serving.CacheTypes()), defaultValue: "auto",
		help: "Type of the KV cache", accepts: []string{"kv-cache-dtype"}, also: []string{"cache-type-k", "ctk", "kv_cache_dtype"},
		meant: map[string]string{"fp16": "f16", "q8": "q8_0", "q4": "q4_0", "int8": "q8_0"},
	},
	{
		name: "ubatch", at: func(request *Request) any { return &request.serving.UBatch }, serves: true, engines: gguf, again: true, on: placing, hidden: onCheck | onEstimate, defaultValue: "512", leftOut: "512",
		help: "Tokens of one pass of llama.cpp", also: []string{"ubatch-size", "ubatch_size", "ub"},
	},
	{
		name: "mmproj", at: func(request *Request) any { return &request.serving.MMProj }, serves: true, engines: gguf, again: true, on: placing, hidden: onCheck | onEstimate,
		help: "Encoder of images (GGUF)", also: []string{"mm"},
	},
	{
		name: "draft", at: func(request *Request) any { return &request.serving.Draft }, serves: true, engines: gguf, again: true, on: placing, hidden: onCheck | onEstimate,
		help: "Draft model (GGUF)", also: []string{"model-draft", "spec-draft-model", "md"},
	},
	{
		name: "tensor-split", at: func(request *Request) any { return &request.tensorSplit }, serves: true, engines: gguf, on: onEstimate, hidden: onEstimate,
		help: "Parts of the model for each GPU [its free memory]", also: []string{"tensor_split", "ts"},
	},
	{
		name: "gpu-layers", at: func(request *Request) any { return &request.gpuLayers }, serves: true, engines: gguf, on: onEstimate, hidden: onEstimate, leftOut: "all",
		help: "Blocks on GPUs, and the output as one more [all]", also: []string{"n-gpu-layers", "n_gpu_layers", "ngl", "num-gpu", "num_gpu"},
	},
	{
		name: "host-experts", at: func(request *Request) any { return &request.serving.HostExperts }, serves: true, engines: gguf, on: onEstimate, hidden: onEstimate, leftOut: "none",
		help: "Blocks whose experts stay on the host [none]", also: []string{"n-cpu-moe", "ncmoe"},
	},
	{
		name: "max-num-batched-tokens", at: func(request *Request) any { return &request.serving.BatchedTokens }, serves: true, engines: ranked, again: true, on: placing, hidden: onPlan | onCheck | onEstimate, leftOut: "by the GPU",
		help: "Tokens of one pass of vLLM or SGLang [by the GPU]", accepts: []string{"chunked-prefill-size"}, also: []string{"max_num_batched_tokens"},
	},
	{
		name: "enforce-eager", at: func(request *Request) any { return &request.serving.Eager }, serves: true, engines: ranked, again: true, on: placing, hidden: onPlan | onCheck | onEstimate,
		help: "No CUDA graphs", accepts: []string{"disable-cuda-graph"}, also: []string{"enforce_eager"},
	},
	{
		name: "engine-version", at: func(request *Request) any { return &request.serving.EngineVersion }, serves: true, engines: ranked, again: true, on: placing, hidden: onPlan | onCheck | onEstimate,
		help: "Release of vLLM, as 0.33 [the newest known]", also: []string{"engine_version", "vllm-version"},
	},
	{
		name: "calibration", at: func(request *Request) any { return &request.Calibration }, serves: true, engines: ranked, again: true, on: searching, hidden: onPlan | onEstimate,
		help: "Read what devmap watch --log wrote for this engine and GPU",
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
	ofPipeline("height", "Image height [the pipeline's]", func(request *Request) any { return &request.Generation.Height }),
	ofPipeline("width", "Image width [the pipeline's]", func(request *Request) any { return &request.Generation.Width }),
	ofPipeline("frames", "Video frames [the pipeline's]", func(request *Request) any { return &request.Generation.Frames }),
	{name: "component", on: onPlan, help: "Plan one component of the pipeline", at: func(request *Request) any { return &request.Generation.Component }},
	{name: "vae-tiling", on: onPlan, help: "Decode one tile at a time", at: func(request *Request) any { return &request.Generation.VAETiling }},
	{name: "vae-slicing", on: onPlan, help: "Decode one image at a time", at: func(request *Request) any { return &request.Generation.VAESlicing }},
	{name: "cache-latents", on: onPlan, help: "Encode pictures before DreamBooth training", at: func(request *Request) any { return &request.Generation.CacheLatents }},
	{name: "vae-precision", on: onPlan, help: "VAE type: bf16 or fp32 [the pipeline's]", leftOut: "the pipeline's own", at: func(request *Request) any { return &request.Generation.VAEPrecision }},
	ofPipeline("cfg-degree", "xDiT: GPUs for classifier-free guidance, 1 or 2 [1]", func(request *Request) any { return &request.Generation.CFGDegree }),
	ofPipeline("ulysses", "xDiT: GPUs that share the attention heads [1]", func(request *Request) any { return &request.Generation.Ulysses }),
	ofPipeline("ring", "xDiT: GPUs in ring attention [1]", func(request *Request) any { return &request.Generation.Ring }),
	ofPipeline("pipefusion", "xDiT: pipeline stages of transformer blocks [1]", func(request *Request) any { return &request.Generation.PipeFusion }),
	ofPipeline("fully-shard-degree", "xDiT: GPUs that shard transformer and T5 weights [1]", func(request *Request) any { return &request.Generation.FullyShard }),
}

func ofPipeline(name, help string, at func(request *Request) any) flag {
	return flag{name: name, on: onPlan, help: help, at: at, leftOut: "the pipeline's own"}
}
