package phases

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestSingleMeasured: Wan 2.1 1.3B without its text encoder, its autoencoder in single precision
// (H200, diffusers 0.42.1): 12,592,851,456 bytes, 11.73 GiB, 0.3 % more than predicted.
func TestSingleMeasured(t *testing.T) {
	wan := map[string]string{
		"model_index.json":        `{"_class_name":"WanPipeline","transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
		"transformer/config.json": `{"_class_name":"WanTransformer3DModel","num_attention_heads":12,"ffn_dim":8960,"num_layers":30}`,
		"vae/config.json":         `{"_class_name":"AutoencoderKLWan"}`,
	}
	for words, work := range map[string]Workload{
		"GPU 0 holds 11.69 GiB": {Height: 480, Width: 832, Frames: 33, VAEPrecision: "bf16"},
		"twice as large":        {Height: 480, Width: 832, Frames: 33, VAEPrecision: "bf16", Offload: "sequential"},
		"counted in float32":    {Height: 480, Width: 832, Frames: 33},
	} {
		plan := fixtures.Must(of(folder(t, wan), work, h200))(t)
		if said := strings.Join(plan.Warnings, "\n"); !strings.Contains(said, words) {
			t.Errorf("%q is not in\n%s", words, said)
		}
	}
}

// TestDocumentedVAE: Wan's autoencoder has its documentation's type, within 0.5 % of the measured
// 12,592,851,456 bytes; under xDiT bf16; other pipelines refuse fp32.
func TestDocumentedVAE(t *testing.T) {
	wan := map[string]string{
		"model_index.json":        `{"_class_name":"WanPipeline","transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
		"transformer/config.json": `{"_class_name":"WanTransformer3DModel","num_attention_heads":12,"ffn_dim":8960,"num_layers":30}`,
		"vae/config.json":         `{"_class_name":"AutoencoderKLWan"}`,
	}
	work := Workload{Height: 480, Width: 832, Frames: 33}
	plan := fixtures.Must(of(folder(t, wan), work, h200))(t)
	if got := float64(plan.peak()); got < .995*12_592_851_456 || got > 1.005*12_592_851_456 {
		t.Errorf("%.0f B at the peak", got)
	}
	work.CFGDegree, work.Ulysses, work.Ring, work.PipeFusion = 1, 2, 1, 1
	if plan, err := of(folder(t, wan), work, h200); err != nil || plan.Workload.VAEPrecision != "" {
		t.Errorf("xDiT: %+v, %v", plan, err)
	}
	if _, _, err := (Workload{VAEPrecision: "fp32"}).filled("FluxPipeline"); err == nil || !strings.Contains(err.Error(), "WanPipeline") {
		t.Errorf("Flux: %v", err)
	}
}

// TestComponentAlone: an autoencoder and a text encoder are planned without a denoiser, on one GPU.
func TestComponentAlone(t *testing.T) {
	flux := map[string]string{
		"model_index.json": `{"_class_name":"FluxPipeline","vae":["diffusers","AutoencoderKL"]}`,
		"vae/config.json":  `{"_class_name":"AutoencoderKL","latent_channels":16,"block_out_channels":[128,256,512,512],"layers_per_block":2,"down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"]}`,
	}
	plan := fixtures.Must(of(folder(t, flux), Workload{}, h200))(t)
	if len(plan.Phases) != 1 || plan.Phases[0].Name != "decode" || plan.peak() < 1<<30 {
		t.Errorf("%+v", plan.Phases)
	}
	for _, offload := range []string{"model", "group", "sequential"} {
		if _, err := of(folder(t, flux), Workload{Offload: offload}, h200); err != nil {
			t.Errorf("%s: %v", offload, err)
		}
	}
	if _, err := of(folder(t, flux), Workload{Ulysses: 2}, h200); err == nil || !strings.Contains(err.Error(), "vae alone runs on one GPU") {
		t.Errorf("two GPUs: %v", err)
	}
}
