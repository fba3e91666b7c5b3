package phases

import (
	"strings"
	"testing"
)

// TestSingleMeasured: Wan 2.1 1.3B without its text encoder, its autoencoder in
// single precision (H200, diffusers 0.42.1): 12,592,851,456 bytes, 11.73 GiB, 0.3 % more than is said.
func TestSingleMeasured(t *testing.T) {
	wan := map[string]string{
		"model_index.json":        `{"_class_name":"WanPipeline","transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
		"transformer/config.json": `{"_class_name":"WanTransformer3DModel","num_attention_heads":12,"ffn_dim":8960,"num_layers":30}`,
		"vae/config.json":         `{"_class_name":"AutoencoderKLWan"}`,
	}
	for words, work := range map[string]Workload{
		"GPU 0 holds 11.69 GiB": {Height: 480, Width: 832, Frames: 33},
		"twice as large":        {Height: 480, Width: 832, Frames: 33, Offload: "sequential"},
	} {
		plan, err := of(folder(t, wan), work, h200)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(plan.Warnings, "\n"); !strings.Contains(said, words) {
			t.Errorf("%q is not in\n%s", words, said)
		}
	}
}
