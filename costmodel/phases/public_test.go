package phases

import (
	"maps"
	"strings"
	"testing"
)

const (
	clipLarge = `{"architectures":["CLIPTextModelWithProjection"],"model_type":"clip_text_model","hidden_size":1280,"intermediate_size":5120,"num_hidden_layers":32,"num_attention_heads":20,"projection_dim":1280,"torch_dtype":"bfloat16"}`
	wanI2V    = `{"_class_name":"WanTransformer3DModel","in_channels":36,"image_dim":1280,"added_kv_proj_dim":5120}`
)

// public are pipelines of other models of known families, by name.
func public() map[string]map[string]string {
	kontext := maps.Clone(flux)
	kontext["model_index.json"] = strings.Replace(flux["model_index.json"], "FluxPipeline", "FluxKontextPipeline", 1)
	fill := maps.Clone(flux)
	fill["model_index.json"] = strings.Replace(flux["model_index.json"], "FluxPipeline", "FluxFillPipeline", 1)
	fill["transformer/config.json"] = `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true,"in_channels":384,"out_channels":64}`
	return map[string]map[string]string{
		"flux-fill": fill,
		"stable-diffusion-v1-5": {
			"model_index.json":         `{"_class_name":"StableDiffusionPipeline","text_encoder":["transformers","CLIPTextModel"],"unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}`,
			"text_encoder/config.json": flux["text_encoder/config.json"],
			"unet/config.json":         `{"_class_name":"UNet2DConditionModel","sample_size":64,"down_block_types":["CrossAttnDownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D","DownBlock2D"],"up_block_types":["UpBlock2D","CrossAttnUpBlock2D","CrossAttnUpBlock2D","CrossAttnUpBlock2D"],"block_out_channels":[320,640,1280,1280],"cross_attention_dim":768,"attention_head_dim":8}`,
			"vae/config.json":          strings.Replace(flux["vae/config.json"], `"latent_channels":16,"use_quant_conv":false,"use_post_quant_conv":false,"sample_size":1024`, `"latent_channels":4,"sample_size":512`, 1),
		},
		"sdxl-refiner": {
			"model_index.json":           `{"_class_name":"StableDiffusionXLImg2ImgPipeline","text_encoder":[null,null],"text_encoder_2":["transformers","CLIPTextModelWithProjection"],"unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}`,
			"text_encoder_2/config.json": clipLarge,
			"unet/config.json":           `{"_class_name":"UNet2DConditionModel","down_block_types":["DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D","DownBlock2D"],"up_block_types":["UpBlock2D","CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"],"block_out_channels":[384,768,1536,1536],"transformer_layers_per_block":4,"cross_attention_dim":1280,"attention_head_dim":[6,12,24,24],"use_linear_projection":true,"addition_embed_type":"text_time","addition_time_embed_dim":256,"projection_class_embeddings_input_dim":2560}`,
			"vae/config.json":            flux["vae/config.json"],
		},
		"flux-kontext": kontext,
		"wan2.1-i2v": {
			"model_index.json":          `{"_class_name":"WanImageToVideoPipeline","image_encoder":["transformers","CLIPVisionModel"],"transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
			"image_encoder/config.json": `{"architectures":["CLIPVisionModelWithProjection"],"model_type":"clip_vision_model","hidden_size":1280,"intermediate_size":5120,"num_hidden_layers":32,"num_attention_heads":16,"image_size":224,"patch_size":14,"projection_dim":1024,"torch_dtype":"bfloat16"}`,
			"transformer/config.json":   wanI2V,
			"vae/config.json":           `{"_class_name":"AutoencoderKLWan"}`,
		},
		"wan2.2-t2v-a14b": {
			"model_index.json":          `{"_class_name":"WanPipeline","boundary_ratio":0.875,"transformer":["diffusers","WanTransformer3DModel"],"transformer_2":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
			"transformer/config.json":   `{"_class_name":"WanTransformer3DModel"}`,
			"transformer_2/config.json": `{"_class_name":"WanTransformer3DModel"}`,
			"vae/config.json":           `{"_class_name":"AutoencoderKLWan"}`,
		},
		"wan2.2-ti2v-5b": {
			"model_index.json":        `{"_class_name":"WanPipeline","expand_timesteps":true,"transformer":["diffusers","WanTransformer3DModel"],"vae":["diffusers","AutoencoderKLWan"]}`,
			"transformer/config.json": `{"_class_name":"WanTransformer3DModel","num_attention_heads":24,"in_channels":48,"out_channels":48,"ffn_dim":14336,"num_layers":30}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLWan","z_dim":48,"in_channels":12,"out_channels":12,"patch_size":2,"is_residual":true}`,
		},
		"cogvideox-i2v": {
			"model_index.json":        `{"_class_name":"CogVideoXImageToVideoPipeline","transformer":["diffusers","CogVideoXTransformer3DModel"],"vae":["diffusers","AutoencoderKLCogVideoX"]}`,
			"transformer/config.json": `{"_class_name":"CogVideoXTransformer3DModel","num_attention_heads":48,"num_layers":42,"in_channels":32,"use_rotary_positional_embeddings":true,"use_learned_positional_embeddings":true}`,
			"vae/config.json":         `{"_class_name":"AutoencoderKLCogVideoX"}`,
		},
	}
}

// TestPublic: the denoiser's parameters as in the models' cards (in units of 10⁷), the encoder of
// the encoding's peak, and notes or refusals.
func TestPublic(t *testing.T) {
	pipelines := public()
	for name, want := range map[string]struct {
		params         int64
		encoder, words string
	}{
		"stable-diffusion-v1-5": {86, "text_encoder", "stay until the process ends"},
		"sdxl-refiner":          {226, "vae", "raised to float32"},
		"flux-fill":             {1190, "vae", "stay until the process ends"},
		"flux-kontext":          {1190, "vae", "as large as the one that is made"},
		"wan2.1-i2v":            {1639, "vae", "the forward of a CLIPVisionModelWithProjection is not known"},
		"wan2.2-t2v-a14b":       {1429, "", "counted in float32"},
		"cogvideox-i2v":         {557, "vae", "stay until the process ends"},
		"wan2.2-ti2v-5b":        {0, "", "the transformer denoises 48 channels"},
	} {
		run, plan, err := begin(folder(t, pipelines[name]), Workload{}, h200)
		if err == nil {
			plan, err = run.planned(plan)
		}
		if err != nil {
			if want.params > 0 || !strings.Contains(err.Error(), want.words) {
				t.Errorf("%s: %v, want %q", name, err, want.words)
			}
			continue
		}
		if got := (run.denoiser.Graph.ParamCount() + 5e6) / 1e7; got != want.params {
			t.Errorf("%s: %d·10⁷ parameters, want %d", name, got, want.params)
		}
		if said := strings.Join(plan.Warnings, "\n"); !strings.Contains(said, want.words) {
			t.Errorf("%s: %q is not in\n%s", name, want.words, said)
		}
		if first := plan.Phases[0]; want.encoder != "" && (first.Name != "encode" || first.Component != want.encoder) {
			t.Errorf("%s: %s makes the peak of %s, want %s", name, first.Component, first.Name, want.encoder)
		}
	}
}

// TestLearnedPlaces: CogVideoX-5B-I2V makes videos of one size.
func TestLearnedPlaces(t *testing.T) {
	pipeline := folder(t, public()["cogvideox-i2v"])
	const want = "for 480 × 720, and diffusers refuses others"
	if _, err := of(pipeline, Workload{Height: 512, Width: 720}, h200); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
