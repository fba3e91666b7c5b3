package phases

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// folder writes a pipeline's folder without weights.
func folder(tb testing.TB, files map[string]string) *diffusers.Pipeline {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	pipeline := fixtures.Must(diffusers.Open(dir, nil))(tb)
	return pipeline
}

var flux = map[string]string{
	"model_index.json":           `{"_class_name":"FluxPipeline","text_encoder":["transformers","CLIPTextModel"],"text_encoder_2":["transformers","T5EncoderModel"],"transformer":["diffusers","FluxTransformer2DModel"],"vae":["diffusers","AutoencoderKL"]}`,
	"transformer/config.json":    `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true}`,
	"vae/config.json":            `{"_class_name":"AutoencoderKL","down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],"block_out_channels":[128,256,512,512],"layers_per_block":2,"latent_channels":16,"use_quant_conv":false,"use_post_quant_conv":false,"sample_size":1024}`,
	"text_encoder/config.json":   `{"architectures":["CLIPTextModel"],"model_type":"clip_text_model","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"projection_dim":768,"vocab_size":49408,"max_position_embeddings":77,"torch_dtype":"bfloat16"}`,
	"text_encoder_2/config.json": `{"architectures":["T5EncoderModel"],"model_type":"t5","d_model":4096,"d_ff":10240,"d_kv":64,"num_heads":64,"num_layers":24,"vocab_size":32128,"feed_forward_proj":"gated-gelu","tie_word_embeddings":false,"torch_dtype":"bfloat16"}`,
}

// fluxSmall has few blocks.
func fluxSmall() map[string]string {
	files := maps.Clone(flux)
	files["transformer/config.json"] = `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true,"num_layers":3,"num_single_layers":4}`
	files["text_encoder_2/config.json"] = strings.Replace(flux["text_encoder_2/config.json"], `"num_layers":24`, `"num_layers":3`, 1)
	return files
}

var h200 = costmodel.Device{Name: "H200", CapacityBytes: 150 << 30, WorkspaceBytes: 32 << 20, FLOPS: 800e12}

// TestFluxMeasured: FLUX.1-dev on an H200 (diffusers 0.42.1, two steps, embeddings given). T5's table of
// tokens and its encoder's copy were untied there: 263,192,576 bytes more if all is resident.
func TestFluxMeasured(t *testing.T) {
	pipeline := folder(t, flux)
	for _, c := range []struct {
		work       Workload
		want       int64
		apart      int64
		phase      string
		components string
	}{
		{Workload{}, 36614902784, 263192576, "decode", "vae"},
		{Workload{Offload: "model"}, 24334044672, 0, "denoise", "transformer"},
	} {
		plan := fixtures.Must(of(pipeline, c.work, h200))(t)
		most, at := int64(0), phasePlan{}
		for _, phase := range plan.Phases {
			t.Logf("%s %s: %d, %.2f s", c.work.Offload, phase.Name, phase.Memory[0].Total(), phase.Seconds)
			if total := phase.Memory[0].Total(); total > most {
				most, at = total, phase
			}
		}
		want := c.want - c.apart
		if off := float64(most-want) / float64(want); math.Abs(off) > 0.003 || at.Name != c.phase {
			t.Errorf("%+v: %d in %s, measured %d (%+.3f %%)", c.work, most, at.Name, want, 100*off)
		}
	}
}

// TestRefused: degrees and sizes that cannot be.
func TestRefused(t *testing.T) {
	pipeline := folder(t, flux)
	for words, work := range map[string]Workload{
		"ulysses 5 does not divide the 24 heads": {Ulysses: 5},
		"cfg degree 2: the pipeline has no":      {CFGDegree: 2},
		"pipefusion 99 is more than the 57":      {PipeFusion: 99},
		"pipefusion 32 leaves a GPU without":     {PipeFusion: 32},
		"makes pictures":                         {Frames: 5},
		"does not divide the 64 rows of tokens":  {Ring: 3},
		"fully_shard degree 3 does not divide":   {Ulysses: 2, FullyShardDegree: 3},
		"pipefusion 2: a GPU of the":             {PipeFusion: 2, FullyShardDegree: 2},
		"offload model needs one GPU (--gpus 1)": {Offload: "model", Ulysses: 2},
		`offload "disk" is not known`:            {Offload: "disk"},
	} {
		if _, err := of(pipeline, work, h200); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v, want %q", work, err, words)
		}
	}
}

// TestMissing: a pipeline without its encoder is planned without it.
func TestMissing(t *testing.T) {
	files := map[string]string{}
	for name, text := range flux {
		if !strings.HasPrefix(name, "text_encoder_2/") {
			files[name] = text
		}
	}
	plan := fixtures.Must(of(folder(t, files), Workload{}, h200))(t)
	if len(plan.Warnings) == 0 || !strings.Contains(plan.Warnings[0], "text_encoder_2") || !strings.Contains(plan.Warnings[0], "without it") {
		t.Errorf("%q", plan.Warnings)
	}
}

// TestShares: GPUs share what the degrees split.
func TestShares(t *testing.T) {
	pipeline := folder(t, flux)
	peak := func(work Workload) int64 {
		plan := fixtures.Must(of(pipeline, work, h200))(t)
		most := int64(0)
		for _, used := range plan.Phases[1].Memory {
			most = max(most, used.Total())
		}
		return most
	}
	one := peak(Workload{})
	for _, work := range []Workload{{Ulysses: 4}, {Ring: 4}, {PipeFusion: 4}, {Ulysses: 4, FullyShardDegree: 4}} {
		if four := peak(work); four >= one {
			t.Errorf("%+v: %d, on one GPU %d", work, four, one)
		}
	}
}

// TestOffloadsMeasured: every phase of a Flux pipeline of few blocks under the modes of offloading
// (H200, diffusers 0.42.1). CLIP ran after T5 there, so its 252,020,224 bytes stayed with the
// transformer under model offloading: the pipeline itself runs CLIP first.
func TestOffloadsMeasured(t *testing.T) {
	pipeline := folder(t, fluxSmall())
	for mode, want := range map[string][3]int64{
		"":           {5423944704, 5675126272, 7737592832},
		"model":      {1713461760, 4080958464 - 252020224, 2761829376},
		"sequential": {303043584, 537487360, 2592739328},
		"group":      {1699840512, 1203891712, 2622678016},
	} {
		plan := fixtures.Must(of(pipeline, Workload{Offload: mode}, h200))(t)
		for i, phase := range plan.Phases {
			off := float64(phase.Memory[0].Total()-want[i]) / float64(want[i])
			t.Logf("%q %s: %d, measured %d (%+.3f %%)", mode, phase.Name, phase.Memory[0].Total(), want[i], 100*off)
			if math.Abs(off) > 0.02 {
				t.Errorf("%q %s: %d, measured %d (%+.3f %%)", mode, phase.Name, phase.Memory[0].Total(), want[i], 100*off)
			}
		}
	}
}

// TestPipelinesMeasured: whole pipelines on an H200 (diffusers 0.42.1, embeddings given).
func TestPipelinesMeasured(t *testing.T) {
	const clip = `{"architectures":["CLIPTextModel"],"model_type":"clip_text_model","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"projection_dim":768,"torch_dtype":"bfloat16"}`
	sdxl := map[string]string{
		"model_index.json":           `{"_class_name":"StableDiffusionXLPipeline","text_encoder":["transformers","CLIPTextModel"],"text_encoder_2":["transformers","CLIPTextModelWithProjection"],"unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}`,
		"text_encoder/config.json":   clip,
		"text_encoder_2/config.json": `{"architectures":["CLIPTextModelWithProjection"],"model_type":"clip_text_model","hidden_size":1280,"intermediate_size":5120,"num_hidden_layers":32,"num_attention_heads":20,"projection_dim":1280,"hidden_act":"gelu","torch_dtype":"bfloat16"}`,
		"unet/config.json":           `{"_class_name":"UNet2DConditionModel","down_block_types":["DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"],"up_block_types":["CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"],"block_out_channels":[320,640,1280],"transformer_layers_per_block":[1,2,10],"cross_attention_dim":2048,"attention_head_dim":[5,10,20],"use_linear_projection":true,"addition_embed_type":"text_time","addition_time_embed_dim":256,"projection_class_embeddings_input_dim":2816}`,
		"vae/config.json":            `{"_class_name":"AutoencoderKL","down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],"block_out_channels":[128,256,512,512],"layers_per_block":2,"latent_channels":4,"sample_size":1024}`,
	}
	cogVideoX := map[string]string{
		"model_index.json":         `{"_class_name":"CogVideoXPipeline","text_encoder":["transformers","T5EncoderModel"],"transformer":["diffusers","CogVideoXTransformer3DModel"],"vae":["diffusers","AutoencoderKLCogVideoX"]}`,
		"text_encoder/config.json": flux["text_encoder_2/config.json"],
		"transformer/config.json":  `{"_class_name":"CogVideoXTransformer3DModel","num_attention_heads":48,"num_layers":42,"use_rotary_positional_embeddings":true}`,
		"vae/config.json":          `{"_class_name":"AutoencoderKLCogVideoX"}`,
	}
	for _, c := range []struct {
		files map[string]string
		work  Workload
		want  int64
	}{
		{sdxl, Workload{}, 9647441408},
		{sdxl, Workload{Height: 768, Width: 768}, 8531355136},
		{sdxl, Workload{Offload: "model"}, 5618792960},
		{cogVideoX, Workload{}, 37009372672},
		{cogVideoX, Workload{VAETiling: true}, 25231839232},
		{cogVideoX, Workload{Offload: "model", VAETiling: true}, 14021303296},
	} {
		plan := fixtures.Must(of(folder(t, c.files), c.work, h200))(t)
		off := float64(plan.peak()-c.want) / float64(c.want)
		t.Logf("%+v: %d, measured %d (%+.3f %%)", c.work, plan.peak(), c.want, 100*off)
		if math.Abs(off) > 0.01 {
			t.Errorf("%+v: %d, measured %d (%+.3f %%)", c.work, plan.peak(), c.want, 100*off)
		}
	}
}
