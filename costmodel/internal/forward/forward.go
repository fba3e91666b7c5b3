package forward

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

var walks = map[string]func(*tape, module, Call){
	"AutoencoderKL":                      autoencoderKL,
	"AutoencoderKLCogVideoX":             autoencoderCogVideoX,
	"AutoencoderKLHunyuanVideo":          autoencoderHunyuan,
	"AutoencoderKLQwenImage":             autoencoderQwenImage,
	"AutoencoderKLWan":                   autoencoderWan,
	"CLIPTextModel":                      textEncoder,
	"CLIPTextModelWithProjection":        textEncoder,
	"LlamaModel":                         textEncoder,
	"T5EncoderModel":                     textEncoder,
	"UMT5EncoderModel":                   textEncoder,
	"Qwen2_5_VLForConditionalGeneration": textEncoder,
	"LlamaForCausalLM":                   textEncoder,
	"CogVideoXTransformer3DModel":        cogVideoX,
	"FluxTransformer2DModel":             flux,
	"HunyuanVideoTransformer3DModel":     hunyuanVideo,
	"QwenImageTransformer2DModel":        qwenImage,
	"SD3Transformer2DModel":              sd3,
	"UNet2DConditionModel":               unet,
	"WanTransformer3DModel":              wan,
}

// Known reports a class with a walk.
func Known(class string) bool { return walks[class] != nil }

// Of walks a component's forward with values of width bytes.
func Of(graph *modelgraph.Graph, call Call, width int64) (Cost, error) {
	walk := walks[graph.Class]
	if walk == nil {
		return Cost{}, fmt.Errorf("the forward of a %s is not known here, so its activations are not counted (--mode load places its weights: give the component's config.json)", graph.Class)
	}
	run := &tape{grouped: call.Grouped, kernels: kernels{
		memory: memory{width: width}, gpus: max(1, call.Split), ring: max(1, call.Ring), stage: call.Stage, cacheKV: call.CacheKV, streamed: call.Streamed,
	}}
	walk(run, module{modules: modulesOf(graph)}, call)
	if run.live != 0 {
		return Cost{}, fmt.Errorf("%s: %d bytes are alive after its forward", graph.Class, run.live)
	}
	return Cost{PeakBytes: run.peak, Blocks: run.moments, FLOPs: run.flops, Traffic: run.traffic}, nil
}
