package diffusers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fluxFolder writes FLUX.1-dev's folder without weights.
func fluxFolder(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range map[string]string{
		"model_index.json":                `{"_class_name":"FluxPipeline","_diffusers_version":"0.30.0","scheduler":["diffusers","FlowMatchEulerDiscreteScheduler"],"text_encoder":["transformers","CLIPTextModel"],"text_encoder_2":["transformers","T5EncoderModel"],"tokenizer":["transformers","CLIPTokenizer"],"tokenizer_2":["transformers","T5TokenizerFast"],"image_encoder":[null,null],"transformer":["diffusers","FluxTransformer2DModel"],"vae":["diffusers","AutoencoderKL"]}`,
		"transformer/config.json":         `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true}`,
		"vae/config.json":                 `{"_class_name":"AutoencoderKL","down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],"block_out_channels":[128,256,512,512],"layers_per_block":2,"latent_channels":16,"use_quant_conv":false,"use_post_quant_conv":false,"sample_size":1024}`,
		"text_encoder/config.json":        `{"architectures":["CLIPTextModel"],"model_type":"clip_text_model","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"projection_dim":768,"vocab_size":49408,"max_position_embeddings":77,"torch_dtype":"bfloat16"}`,
		"text_encoder_2/config.json":      `{"architectures":["T5EncoderModel"],"model_type":"t5","d_model":4096,"d_ff":10240,"d_kv":64,"num_heads":64,"num_layers":24,"vocab_size":32128,"feed_forward_proj":"gated-gelu","tie_word_embeddings":false,"torch_dtype":"bfloat16"}`,
		"scheduler/scheduler_config.json": `{}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// TestOpen: components with weights in their order; what is missing or unknown
// is named, and the others are read.
func TestOpen(t *testing.T) {
	dir := fluxFolder(t)
	pipeline, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, component := range pipeline.Components {
		if component.Fault != nil {
			t.Fatal(component.Fault)
		}
		total += component.Graph.ParamCount()
	}
	if want := int64(11_901_408_320 + 4_762_310_656 + 123_060_480 + 83_819_683); total != want || len(pipeline.Components) != 4 {
		t.Errorf("%d components of %d parameters, want 4 of %d", len(pipeline.Components), total, want)
	}
	if err := os.RemoveAll(filepath.Join(dir, "text_encoder_2")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vae", "config.json"), []byte(`{"_class_name":"AutoencoderOther"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if pipeline, err = Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	for _, component := range pipeline.Components {
		want := map[string]string{"text_encoder_2": "text_encoder_2/config.json: download it", "vae": `"AutoencoderOther" is not in the table of diffusers`}[component.Name]
		if (component.Fault == nil) != (want == "") || component.Fault != nil && !strings.Contains(component.Fault.Error(), want) {
			t.Errorf("%s: %v, want %q", component.Name, component.Fault, want)
		}
	}
}

// FuzzIndex: no text breaks the reader of indexes.
func FuzzIndex(f *testing.F) {
	f.Add(`{"_class_name":"FluxPipeline","vae":["diffusers","AutoencoderKL"],"x":[null,null]}`)
	f.Add(`{"_class_name":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		if pipeline, err := parseIndex("model_index.json", []byte(text)); err == nil && pipeline.Class == "" {
			t.Error("a pipeline without a class")
		}
	})
}

// FuzzComponent: no config breaks a reader, and none takes long.
func FuzzComponent(f *testing.F) {
	for _, c := range randomComponents(f) {
		f.Add(string(c.Config))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if graph, err := FromConfig("config.json", []byte(text)); err == nil && len(graph.Layers) == 0 {
			t.Error("a component without layers")
		}
	})
}
