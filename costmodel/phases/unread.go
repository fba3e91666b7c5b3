package phases

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// unread refuses a known pipeline with an unknown model, or with an unknown size of a model.
func (run *deployment) unread() error {
	graph := run.denoiser.Graph
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if layer.Name == "patch_embedding" && len(layer.Params) > 0 && layer.Params[0].Shape[1] == 48 {
			return fmt.Errorf("the transformer denoises 48 channels: Wan 2.2's TI2V-5B is not supported, with a time step per token (expand_timesteps) and another autoencoder (is_residual)")
		}
	}
	if graph.Class != "CogVideoXTransformer3DModel" {
		return nil
	}
	sizes := struct {
		Learned bool  `json:"use_learned_positional_embeddings"`
		Height  int64 `json:"sample_height"`
		Width   int64 `json:"sample_width"`
	}{Height: 60, Width: 90}
	if err := json.Unmarshal(graph.Config, &sizes); err != nil {
		return fmt.Errorf("the transformer's sizes: %w", err)
	}
	if !sizes.Learned {
		return nil
	}
	if height, width := sizes.Height*tokenSide/2, sizes.Width*tokenSide/2; run.work.Height != height || run.work.Width != width {
		return fmt.Errorf("height %d and width %d: the transformer learned its places (use_learned_positional_embeddings) for %d × %d, and diffusers refuses others", run.work.Height, run.work.Width, height, width)
	}
	return nil
}
