package phases

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
)

// single tells what an autoencoder takes that is loaded in single precision, as
// diffusers' page of Wan does it (torch_dtype=torch.float32 of
// AutoencoderKLWan.from_pretrained): neither its config nor its folder says so.
func (run *running) single() []string {
	if run.decoder == nil || run.decoder.Class != "AutoencoderKLWan" || width(run.decoder.Graph) != 2 {
		return nil
	}
	if run.work.Offload != "" && run.work.Offload != "model" {
		return []string{"the vae is counted in bf16: loaded in float32, as Wan's documentation does, its weights and activations are twice as large or more"}
	}
	cost, err := forward.Of(run.decoder.Graph, run.decoding(), 4)
	if err != nil {
		return nil
	}
	held := run.held(run.decoder, 0)
	peak := held.Total() + forward.Bytes(run.decoder.Graph) + cost.PeakBytes + run.embeddings() + run.latents()
	return []string{fmt.Sprintf("the vae is counted in bf16: loaded in float32, as Wan's documentation does, GPU 0 holds %v while it decodes", costmodel.Bytes(peak))}
}
