package ask

// Generation has the flags of a diffusion pipeline other than --batch and --offload.
// Zero: the pipeline's own.
type Generation struct {
	Height, Width, Frames                            int64
	VAETiling, VAESlicing                            bool
	VAEPrecision                                     string
	CFGDegree, Ulysses, Ring, PipeFusion, FullyShard int64
	Component                                        string
}

// offloadModes are those of diffusers: a component, a module, a block at a time.
var offloadModes = []string{"model", "sequential", "group"}

// generationFlags are those of folders with a model_index.json.
var generationFlags = []flag{
	ofPipeline("height", "pixels of a picture of a diffusion pipeline (the pipeline's own)", func(request *Request) any { return &request.Generation.Height }),
	ofPipeline("width", "pixels, as --height", func(request *Request) any { return &request.Generation.Width }),
	ofPipeline("frames", "frames of a video, as --height", func(request *Request) any { return &request.Generation.Frames }),
	{name: "component", on: onPlan, help: "plan one component of a diffusion pipeline alone", at: func(request *Request) any { return &request.Generation.Component }},
	{name: "vae-tiling", on: onPlan, help: "the VAE decodes tile by tile", at: func(request *Request) any { return &request.Generation.VAETiling }},
	{name: "vae-slicing", on: onPlan, help: "the VAE decodes picture by picture", at: func(request *Request) any { return &request.Generation.VAESlicing }},
	{name: "vae-precision", on: onPlan, help: "VAE in bf16 or fp32 (bf16; Wan's fp32, as documented)", leftOut: "the pipeline's own", at: func(request *Request) any { return &request.Generation.VAEPrecision }},
	ofPipeline("cfg-degree", "xDiT: GPUs for a prompt and its negative (1)", func(request *Request) any { return &request.Generation.CFGDegree }),
	ofPipeline("ulysses", "xDiT: GPUs that share attention's heads (1)", func(request *Request) any { return &request.Generation.Ulysses }),
	ofPipeline("ring", "xDiT: GPUs in a ring of tokens (1)", func(request *Request) any { return &request.Generation.Ring }),
	ofPipeline("pipefusion", "xDiT: GPUs in a pipeline of blocks (1)", func(request *Request) any { return &request.Generation.PipeFusion }),
	ofPipeline("fully-shard-degree", "xDiT: GPUs that share the weights of transformer and T5 (1)", func(request *Request) any { return &request.Generation.FullyShard }),
}

func ofPipeline(name, help string, at func(request *Request) any) flag {
	return flag{name: name, on: onPlan, help: help, at: at, leftOut: "the pipeline's own"}
}
