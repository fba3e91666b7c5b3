package phases

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// pipesOf are the pipelines of few blocks that were measured.
func pipesOf() map[string]map[string]string {
	t5 := strings.Replace(flux["text_encoder_2/config.json"], `"num_layers":24`, `"num_layers":3`, 1)
	kontext := maps.Clone(flux)
	kontext["model_index.json"] = strings.Replace(flux["model_index.json"], "FluxPipeline", "FluxKontextPipeline", 1)
	kontext["transformer/config.json"] = `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true,"num_layers":2,"num_single_layers":3}`
	kontext["text_encoder_2/config.json"] = t5
	small := maps.Clone(kontext)
	small["model_index.json"] = flux["model_index.json"]
	refiner := public()["sdxl-refiner"]
	refiner["vae/config.json"] = strings.Replace(flux["vae/config.json"], `"latent_channels":16,"use_quant_conv":false,"use_post_quant_conv":false,"sample_size":1024`, `"latent_channels":4,"sample_size":1024`, 1)
	fill := maps.Clone(small)
	fill["model_index.json"] = strings.Replace(flux["model_index.json"], "FluxPipeline", "FluxFillPipeline", 1)
	fill["transformer/config.json"] = strings.Replace(small["transformer/config.json"], `"num_layers"`, `"in_channels":384,"out_channels":64,"num_layers"`, 1)
	cog := public()["cogvideox-i2v"]
	cog["transformer/config.json"] = strings.Replace(cog["transformer/config.json"], `"num_layers":42`, `"num_layers":4`, 1)
	i2v := public()["wan2.1-i2v"]
	i2v["transformer/config.json"] = `{"_class_name":"WanTransformer3DModel","in_channels":36,"image_dim":1280,"added_kv_proj_dim":5120,"num_layers":3}`
	made := map[string]map[string]string{
		"flux-fill-2-3": fill, "cogvideox-i2v-4": cog,
		"sd1.5": public()["stable-diffusion-v1-5"], "sdxl-refiner": refiner, "kontext-2-3": kontext, "flux-2-3": small, "flux-group": small, "flux-group-stream": small, "flux-group-leaf": small, "flux-sequential": small,
		"wan-i2v-3": i2v,
		"sdxl": {
			"model_index.json":           `{"_class_name":"StableDiffusionXLPipeline","text_encoder":["transformers","CLIPTextModel"],"text_encoder_2":["transformers","CLIPTextModelWithProjection"],"unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}`,
			"text_encoder/config.json":   flux["text_encoder/config.json"],
			"text_encoder_2/config.json": clipLarge,
			"unet/config.json":           `{"_class_name":"UNet2DConditionModel","down_block_types":["DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"],"up_block_types":["CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"],"block_out_channels":[320,640,1280],"transformer_layers_per_block":[1,2,10],"cross_attention_dim":2048,"attention_head_dim":[5,10,20],"use_linear_projection":true,"addition_embed_type":"text_time","addition_time_embed_dim":256,"projection_class_embeddings_input_dim":2816}`,
			"vae/config.json":            refiner["vae/config.json"],
		},
		"sd3.5-medium-6": {
			"model_index.json":           `{"_class_name":"StableDiffusion3Pipeline","text_encoder_3":["transformers","T5EncoderModel"],"transformer":["diffusers","SD3Transformer2DModel"],"vae":["diffusers","AutoencoderKL"]}`,
			"transformer/config.json":    `{"_class_name":"SD3Transformer2DModel","num_layers":6,"num_attention_heads":24,"caption_projection_dim":1536,"pos_embed_max_size":384,"qk_norm":"rms_norm","dual_attention_layers":[0,1,2]}`,
			"vae/config.json":            flux["vae/config.json"],
			"text_encoder_3/config.json": t5,
		},
		"qwen-image-4": {
			"model_index.json":        `{"_class_name":"QwenImagePipeline","transformer":["diffusers","QwenImageTransformer2DModel"],"vae":["diffusers","AutoencoderKLQwenImage"]}`,
			"transformer/config.json": `{"_class_name":"QwenImageTransformer2DModel","num_layers":4}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLQwenImage"}`,
		},
		"wan-14b-3": {
			"model_index.json":        `{"_class_name":"WanPipeline","transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
			"transformer/config.json": `{"_class_name":"WanTransformer3DModel","num_layers":3}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLWan"}`,
		},
		"cogvideox-2b-6": {
			"model_index.json":        `{"_class_name":"CogVideoXPipeline","transformer":["diffusers","CogVideoXTransformer3DModel"],"vae":["diffusers","AutoencoderKLCogVideoX"]}`,
			"transformer/config.json": `{"_class_name":"CogVideoXTransformer3DModel","num_layers":6}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLCogVideoX"}`,
		},
		"hunyuan-2-3": {
			"model_index.json":        `{"_class_name":"HunyuanVideoPipeline","transformer":["diffusers","HunyuanVideoTransformer3DModel"],"vae":["diffusers","AutoencoderKLHunyuanVideo"]}`,
			"transformer/config.json": `{"_class_name":"HunyuanVideoTransformer3DModel","num_layers":2,"num_single_layers":3}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLHunyuanVideo"}`,
		},
	}
	inpaint := maps.Clone(made["sdxl"])
	inpaint["model_index.json"] = strings.Replace(inpaint["model_index.json"], "StableDiffusionXLPipeline", "StableDiffusionXLInpaintPipeline", 1)
	inpaint["unet/config.json"] = strings.Replace(inpaint["unet/config.json"], "{", `{"in_channels":9,`, 1)
	made["sdxl-inpaint"] = inpaint
	return made
}

// TestPipesMeasured: pipelines of few blocks on an H200 (diffusers 0.42.1,
// fixtures/measured/how/measure_diffusion_pipes.py). Prompts were given, so encoding is only the
// autoencoder's. Under offloading each first call began with parts on the GPU; later phases count.
func TestPipesMeasured(t *testing.T) {
	figures := 0
	type row struct {
		Pipeline, What string
		Batch          int64
		Sizes          struct {
			Height, Width int64
			Frames        int64 `json:"num_frames"`
		}
		Phases map[string]int64
	}
	for _, row := range fixtures.Must(fixtures.Rows[row]("../../fixtures/measured/diffusion_pipes_h200.jsonl"))(t) {
		mode, variant, _ := strings.Cut(strings.TrimPrefix(row.What, "none"), " ")
		files := pipesOf()[row.Pipeline]
		if files == nil || mode == "group" && variant != "" {
			continue
		}
		plan := fixtures.Must(of(folder(t, files), Workload{Height: row.Sizes.Height, Width: row.Sizes.Width, Frames: row.Sizes.Frames, Batch: row.Batch, Offload: mode, VAEPrecision: "bf16", VAETiling: strings.Contains(row.What, "tiled"), VAESlicing: strings.Contains(row.What, "sliced")}, h200))(t)
		for _, phase := range plan.Phases {
			got, want := phase.Memory[0].Total(), row.Phases[phase.Name]
			if phase.Name == "encode" && phase.Component != "vae" || row.Pipeline == "sd1.5" && mode == "model" && phase.Name == "decode" {
				continue
			}
			figures++
			off := 100 * float64(got-want) / float64(want)
			t.Logf("%s %q %+v %s: %d, measured %d (%+.2f %%)", row.Pipeline, row.What, row.Sizes, phase.Name, got, want, off)
			if math.Abs(off) > 2 {
				t.Errorf("%s %q %+v %s: %d, measured %d (%+.2f %%)", row.Pipeline, row.What, row.Sizes, phase.Name, got, want, off)
			}
		}
	}
	if figures < 57 {
		t.Errorf("%d figures", figures)
	}
}
