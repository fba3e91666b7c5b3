package phases

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// raised are the pipelines whose autoencoder commonly runs in single precision, and why; no config
// says so. diffusers' page of Wan loads it so (AutoencoderKLWan.from_pretrained). SDXL raises it
// before it decodes, if it is in half (pipeline_stable_diffusion_xl.py: needs_upcasting).
var raised = map[string]string{
	"StableDiffusionXLImg2ImgPipeline": "raised to float32, as the pipeline does when it was loaded in float16",
	"StableDiffusionXLInpaintPipeline": "raised to float32, as the pipeline does when it was loaded in float16",
	"StableDiffusionXLPipeline":        "raised to float32, as the pipeline does when it was loaded in float16",
	"WanImageToVideoPipeline":          "loaded in float32, as Wan's documentation does",
	"WanPipeline":                      "loaded in float32, as Wan's documentation does",
}

// typed is a component in the type that it is loaded in.
func (run *deployment) typed(component *diffusers.Component) (*diffusers.Component, error) {
	if component.Name != "vae" || run.work.VAEPrecision != fp32 {
		return component, nil
	}
	return retyped(component, modelgraph.F32)
}

// retyped is a component with all tensors in one type (Module.to).
func retyped(component *diffusers.Component, dtype modelgraph.DType) (*diffusers.Component, error) {
	out, graph := *component, *component.Graph
	graph.Layers = slices.Clone(graph.Layers)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		layer.Params = slices.Clone(layer.Params)
		for j := range layer.Params {
			tensor, err := modelgraph.NewTensor(layer.Params[j].Name, dtype, layer.Params[j].Shape...)
			if err != nil {
				return nil, fmt.Errorf("%s in %v: layer %q: %w", component.Name, dtype, layer.Name, err)
			}
			tensor.Owner = layer.Params[j].Owner
			layer.Params[j] = tensor
		}
	}
	graph.DType = dtype
	out.Graph = &graph
	return &out, nil
}

// single says what an autoencoder takes in single precision, or that it is counted so.
func (run *running) single() []string {
	if run.decoder != nil && run.work.VAEPrecision == fp32 {
		return []string{"the vae is counted in float32, as Wan's documentation loads it"}
	}
	why, known := raised[run.class]
	if !known || run.decoder == nil || width(run.decoder.Graph) != 2 {
		return nil
	}
	if run.work.Offload != "" && run.work.Offload != "model" {
		return []string{fmt.Sprintf("the vae is counted in bf16: %s, its weights and activations are twice as large or more", why)}
	}
	cost, err := forward.Of(run.decoder.Graph, run.decoding(), 4)
	if err != nil {
		return nil
	}
	used := run.memoryOf(run.decoder, 0)
	peak := used.Total() + forward.Bytes(run.decoder.Graph) + cost.PeakBytes + run.embeddings() + run.latents()
	return []string{fmt.Sprintf("the vae is counted in bf16: %s, GPU 0 holds %v while it decodes", why, costmodel.Bytes(peak))}
}

// alone refuses a component that would be spread without a denoiser.
func (run *deployment) alone() error {
	if gpus := run.work.gpus(); gpus > 1 || run.work.FullyShardDegree > 1 {
		return refusedf("%s alone runs on one GPU, and its degrees are of %d: xDiT spreads the transformer (1 GPU works)", run.all[0].Name, max(gpus, run.work.FullyShardDegree))
	}
	return nil
}
