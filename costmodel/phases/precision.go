package phases

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
)

// raised are the pipelines whose autoencoder commonly runs in single precision,
// and why: neither its config nor its folder says so. diffusers' page of Wan
// loads it so (torch_dtype=torch.float32 of AutoencoderKLWan.from_pretrained);
// SDXL's raises it before it decodes, if it was loaded in half
// (pipeline_stable_diffusion_xl.py: needs_upcasting).
var raised = map[string]string{
	"StableDiffusionXLImg2ImgPipeline": "raised to float32, as the pipeline does when it was loaded in float16",
	"StableDiffusionXLInpaintPipeline": "raised to float32, as the pipeline does when it was loaded in float16",
	"StableDiffusionXLPipeline":        "raised to float32, as the pipeline does when it was loaded in float16",
	"WanImageToVideoPipeline":          "loaded in float32, as Wan's documentation does",
	"WanPipeline":                      "loaded in float32, as Wan's documentation does",
}

// single says what an autoencoder takes in single precision.
func (run *running) single() []string {
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
