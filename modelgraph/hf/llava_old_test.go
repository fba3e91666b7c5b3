package hf

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// oldLlavaConfig is LLaVA 1.5's in small, as its own code saves one.
const oldLlavaConfig = `{"torch_dtype": "bfloat16", "architectures": ["LlavaLlamaForCausalLM"], "model_type": "llava", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
 "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "tie_word_embeddings": false, "tune_mm_mlp_adapter": false, "unfreeze_mm_vision_tower": false,
 "mm_hidden_size": 32, "mm_projector_type": "mlp2x_gelu", "mm_vision_tower": "openai/clip-vit-large-patch14-336", "mm_vision_select_layer": -2}`

// TestOldLlava: the projector follows the language model and reads the output of a tower outside
// the model (llava_arch.py: LlavaMetaModel).
func TestOldLlava(t *testing.T) {
	graph := fixtures.Must(FromConfig("config.json", []byte(oldLlavaConfig)))(t)
	names := graphTensors(graph, func(layer *modelgraph.Layer) []modelgraph.Tensor { return layer.Params })
	want := []string{
		"model.norm.weight [64]", "model.mm_projector.0.weight [64,32]", "model.mm_projector.0.bias [64]",
		"model.mm_projector.2.weight [64,64]", "model.mm_projector.2.bias [64]", "lm_head.weight [100,64]",
	}
	if got := strings.Join(names[max(0, len(names)-len(want)):], "\n"); got != strings.Join(want, "\n") {
		t.Errorf("it ends in\n%s", got)
	}
	for i := range graph.Layers {
		if layer := &graph.Layers[i]; strings.Contains(layer.Name, "mm_projector") && layer.Stream != imageStream(24*24) {
			t.Errorf("%s works on %+v", layer.Name, layer.Stream)
		}
	}
	if len(graph.Warnings) != 1 || !strings.Contains(graph.Warnings[0], `"openai/clip-vit-large-patch14-336" is loaded apart`) {
		t.Errorf("warnings %q", graph.Warnings)
	}
}

// TestOldLlavaVariants: types, projectors and towers of its first code.
func TestOldLlavaVariants(t *testing.T) {
	plain := fixtures.Must(FromConfig("config.json", []byte(oldLlavaConfig)))(t)
	for _, c := range []struct {
		from, to string
		more     int64  // parameters
		want     string // of the refusal
	}{
		{`"model_type": "llava"`, `"model_type": "llama"`, 0, ""},
		{`"model_type": "llava"`, `"model_type": "llava_llama"`, 0, ""},
		{`"mm_projector_type": "mlp2x_gelu", `, ``, -64*64 - 64, ""},
		{`mlp2x_gelu`, `mlp3x_gelu`, 64*64 + 64, ""},
		{`"mm_hidden_size"`, `"mm_patch_merge_type": "spatial_unpad", "mm_hidden_size"`, 64, ""},
		{`mlp2x_gelu`, `ldpnet`, 0, `mm_projector_type: "ldpnet"`},
		{`"unfreeze_mm_vision_tower": false`, `"unfreeze_mm_vision_tower": true`, 0, `unfreeze_mm_vision_tower: true makes`},
		{`openai/clip-vit-large-patch14-336`, `./tower`, 0, `mm_vision_tower: "./tower" does not say`},
		{`"mm_hidden_size"`, `"mm_resampler_type": "perceiver", "mm_hidden_size"`, 0, `mm_resampler_type: "perceiver"`},
	} {
		graph, err := FromConfig("config.json", []byte(strings.Replace(oldLlavaConfig, c.from, c.to, 1)))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.to, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.to, err)
		case graph.ParamCount() != plain.ParamCount()+c.more:
			t.Errorf("%s: %d parameters beside %d", c.to, graph.ParamCount(), plain.ParamCount())
		}
	}
}
