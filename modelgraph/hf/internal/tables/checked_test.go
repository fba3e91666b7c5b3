package tables_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// allTensors are the parameters and buffers of a graph by their full names.
func allTensors(g *modelgraph.Graph) map[string]modelgraph.Tensor {
	all := make(map[string]modelgraph.Tensor)
	for i := range g.Layers {
		for _, list := range [][]modelgraph.Tensor{g.Layers[i].Params, g.Layers[i].Buffers} {
			for _, t := range list {
				all[modelgraph.FullName(g.Layers[i].Name, t.Name)] = t
			}
		}
	}
	return all
}

// TestCheckedTensors: tensors of untraced builds of Transformers 5.24, and of the release before a
// change, for types with readers.
func TestCheckedTensors(t *testing.T) {
	const deepseek = `{"model_type":"deepseek_v2","architectures":["DeepseekV2ForCausalLM"],"num_hidden_layers":1,"first_k_dense_replace":0,"dtype":"bfloat16"}`
	const noShared = `{"model_type":"deepseek_v2","architectures":["DeepseekV2ForCausalLM"],"num_hidden_layers":1,"first_k_dense_replace":0,"n_shared_experts":0,"mlp_bias":true,"dtype":"bfloat16"}`
	const giant = `{"model_type":"dinov2","architectures":["Dinov2Model"],"num_hidden_layers":1,"use_swiglu_ffn":true}`
	const minimax = `{"model_type":"minimax_m2","architectures":["MiniMaxM2ForCausalLM"],"num_hidden_layers":1,"rotary_dim":64,"head_dim":128,"dtype":"bfloat16"}`
	const codegen = `{"model_type":"codegen","architectures":["CodeGenForCausalLM"],"n_layer":2}`
	const nemotron = `{"model_type":"nemotron_h","architectures":["NemotronHForCausalLM"],"layers_block_type":["moe"],"moe_latent_size":64}`
	// The backbone has its config's num_channels if the file has no backbone_config.
	const detr = `{"model_type":"conditional_detr","architectures":["ConditionalDetrForObjectDetection"],"num_channels":1}`
	const given = `{"model_type":"conditional_detr","architectures":["ConditionalDetrForObjectDetection"],"backbone_config":{"model_type":"timm_backbone","backbone":"resnet50","out_indices":[1,2,3,4]}}`
	// The readers of these have no defaults: the table has them.
	const sw3, shield = `{"model_type":"gpt-sw3","architectures":["GPT2LMHeadModel"]}`, `{"model_type":"shieldgemma2","architectures":["Gemma3ForConditionalGeneration"]}`
	const eurobert = `{"model_type":"eurobert","architectures":["EuroBertForMaskedLM"],"mlp_bias":true}`
	// An Auto class gives a class of the text model the config inside.
	const text = `{"model_type":"qwen3_5","architectures":["Qwen3_5ForCausalLM"],"text_config":{"model_type":"qwen3_5_text","num_hidden_layers":2,"vocab_size":1000}}`
	for _, c := range []struct{ config, release, name, absent, dtype, shape string }{
		{text, "5.24", "model.embed_tokens.weight", "model.layers.2.mlp.up_proj.weight", "F32", "[1000 4096]"},
		{sw3, "5.24", "transformer.wte.weight", "", "F32", "[50257 768]"},
		{shield, "5.24", "model.vision_tower.embeddings.patch_embedding.weight", "", "F32", "[768 3 16 16]"},
		{eurobert, "5.24", "lm_head.bias", "", "F32", "[128256]"},
		{deepseek, "5.24", "model.layers.0.mlp.gate.weight", "", "F32", "[64 4096]"},
		{deepseek, "5.23", "model.layers.0.mlp.gate.weight", "", "BF16", "[64 4096]"},
		{noShared, "5.24", "model.layers.0.mlp.shared_experts.down_proj.bias", "", "BF16", "[4096]"},
		{giant, "5.24", "encoder.layer.0.mlp.gate_proj.weight", "encoder.layer.0.mlp.weights_in.weight", "F32", "[2048 768]"},
		{giant, "5.17", "encoder.layer.0.mlp.weights_in.weight", "encoder.layer.0.mlp.gate_proj.weight", "F32", "[4096 768]"},
		{minimax, "5.24", "model.rotary_emb.inv_freq", "", "F32", "[32]"},
		{minimax, "5.17", "model.rotary_emb.inv_freq", "", "F32", "[64]"},
		{minimax, "5.24", "model.layers.0.mlp.e_score_correction_bias", "", "BF16", "[256]"},
		{codegen, "5.24", "transformer.rotary_emb.embed_positions", "transformer.h.0.attn.embed_positions", "F32", "[2048 64]"},
		{codegen, "5.23", "transformer.h.1.attn.embed_positions", "transformer.rotary_emb.embed_positions", "F32", "[2048 64]"},
		{detr, "5.24", "model.backbone.model.conv1.weight", "", "F32", "[64 1 7 7]"},
		{given, "5.24", "model.backbone.model.conv1.weight", "", "F32", "[64 3 7 7]"},
		{nemotron, "5.24", "model.layers.0.mixer.fc2_latent_proj.weight", "", "F32", "[4096 64]"},
	} {
		g, err := hf.FromConfig("config.json", []byte(c.config), c.release)
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		all := allTensors(g)
		if _, there := all[c.absent]; there {
			t.Errorf("%s, %s: it has %s", c.config, c.release, c.absent)
		}
		if got := all[c.name]; got.DType.String() != c.dtype || strings.ReplaceAll(tables.InJSON(got.Shape), ",", " ") != c.shape {
			t.Errorf("%s, %s: %s is %v %v, want %s %s", c.config, c.release, c.name, got.DType, got.Shape, c.dtype, c.shape)
		}
	}
}

// TestCheckedRefused: fields of a config disagree.
func TestCheckedRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type":"zamba2","hybrid_layer_ids":[6]}`:                                 `hybrid_layer_ids: [6] contradicts layers_block_type, whose hybrid layers are [6,12,`,
		`{"model_type":"llama","hidden_act":"slu"}`:                                      `hidden_act: "slu" is no activation of Transformers 5.24`,
		`{"model_type":"nanochat","hidden_act":"slu"}`:                                   `hidden_act: "slu" is no activation of Transformers 5.24`,
		`{"model_type":"llava","text_config":{"model_type":"llama","hidden_act":"slu"}}`: `text_config.hidden_act: "slu" is no activation`,
		`{"model_type":"llama","head_dim":33}`:                                           `head_dim: 33 numbers of a head turn, and rotary embeddings turn pairs`,
		`{"model_type":"llama","hidden_size":1056}`:                                      `num_attention_heads: 33 numbers of a head turn`,
		`{"model_type":"cohere2","head_dim":384}`:                                        `head_dim: 384 contradicts the 128`,
		`{"model_type":"deepseek_v3","head_dim":128}`:                                    `head_dim: 128 contradicts the 64`,
		`{"model_type":"umt5","feed_forward_proj":"gelu","is_gated_act":true}`:           `is_gated_act: the table`,
		`{"model_type":"gpt2","n_embd":66,"n_head":4}`:                                   `n_head: 4 heads do not divide 66`,
		`{"model_type":"gpt2","n_layer":1000000}`:                                        `n_layer: 1000000: the table`,
		`{"model_type":"t5","d_kv":1099511627776,"num_heads":1099511627776}`:             `d_kv: 1099511627776: the table`,
		`{"model_type":"t5","feed_forward_proj":"gated-gelu-fast"}`:                      `feed_forward_proj: "gated-gelu-fast": the table`,
		`{"model_type":"bert","add_cross_attention":true}`:                               `is_decoder`,
		`{"model_type":"bert","architectures":["BertForPoetry"]}`:                        `architectures[0]: "BertForPoetry"`,
		`{"model_type":"musicgen","text_encoder":{"model_type":"llama"}}`:                `text_encoder.model_type: AutoModelForTextEncoding of Transformers 5.24 makes no model of a "llama"`,
		`{"model_type":"segformer","depths":[2,2,"x",2]}`:                                `depths: [2,2,"x",2]: the table`,
		`{"model_type":"gptj","transformers_version":"9.1","n_layer":{"a":[1]}}`:         `n_layer`,
	} {
		if _, err := hf.FromConfig("config.json", []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// TestTableGuards: configs that no build had and that the table misread; an untraced build differs.
func TestTableGuards(t *testing.T) {
	for config, field := range map[string]string{
		`{"model_type":"hubert","architectures":["HubertModel"],"conv_dim":[24,16,24],"conv_kernel":[5,3,5],"conv_stride":[4,4,4],"num_feat_extract_layers":3}`: "",
		`{"model_type":"llava","vision_feature_layer":[-2,-1]}`:                                                                "vision_feature_layer",
		`{"model_type":"vision-encoder-decoder","encoder":{"model_type":"bert"},"decoder":{"model_type":"gpt2","n_embd":"x"}}`: "",
	} {
		_, err := readTypes(tables.Newest, []byte(config))
		var refused *tables.Error
		if !errors.As(err, &refused) || field != "" && refused.Field != field {
			t.Errorf("%s: %v, want an error of %s", config, err, field)
		}
	}
	tree, err := readTypes(tables.Newest, []byte(`{"model_type":"glm","num_hidden_layers":1,"rope_parameters":{"rope_type":"default","rope_theta":10000,"partial_rotary_factor":1.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range tree.Tensors {
		if strings.HasSuffix(tensor.Name, ".inv_freq") && tensor.Shape[0] != 64 {
			t.Errorf("%s of %d, the file says that all 128 numbers of a head turn", tensor.Name, tensor.Shape[0])
		}
	}
}

// TestBothTowers: Gemma 4 with both towers is as Transformers 5.24 builds it on the meta device.
func TestBothTowers(t *testing.T) {
	g, err := hf.FromConfig("config.json", []byte(`{"model_type":"gemma4","architectures":["Gemma4ForConditionalGeneration"],"audio_config":{},"vision_config":{"model_type":"gemma4_vision"},
		"text_config":{"model_type":"gemma4_text","hidden_size":1536,"intermediate_size":6144,"num_hidden_layers":35,"num_attention_heads":8,"num_key_value_heads":1,"head_dim":256,
		"global_head_dim":512,"num_kv_shared_layers":20,"hidden_size_per_layer_input":256,"use_double_wide_mlp":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.ParamCount(); got != 5_097_219_104 || len(g.Units) != 81 {
		t.Errorf("%d parameters in %d units, want 5097219104 in 81", got, len(g.Units))
	}
}

// TestCheckedNotes: notes for users of another release, another class or the repository's code.
func TestCheckedNotes(t *testing.T) {
	for config, want := range map[string][2]string{
		`{"model_type":"deepseek_v3","dtype":"bfloat16"}`:                                                        {"releases 5.17, 5.21, 5.22, 5.23 keep other parameters in float32", ""},
		`{"model_type":"kimi_linear","dtype":"bfloat16"}`:                                                        {"release 5.17 keeps other parameters in float32", ""},
		`{"model_type":"kimi_linear","architectures":["KimiLinearForCausalLM"],"transformers_version":"5.20.0"}`: {"the table of Transformers 5.20 lacks the class KimiLinearForCausalLM: it is read by that of 5.24", ""},
		`{"model_type":"bert","architectures":["BertForSequenceClassification"]}`:                                {"", "BertForSequenceClassification"},
		`{"model_type":"t5","architectures":["T5ForConditionalGeneration"]}`:                                     {"", "T5ForConditionalGeneration"},
		`{"model_type":"llama","architectures":["LlamaForCausalLM"]}`:                                            {"", ""},
		`{"model_type":"llama","num_hiden_layers":4}`:                                                            {`the config has "num_hiden_layers", which llama does not read: did you mean "num_hidden_layers"?`, ""},
		`{"model_type":"nanochat","num_hiden_layers":4}`:                                                         {`the config has "num_hiden_layers", which nanochat does not read: did you mean "num_hidden_layers"?`, ""},
		`{"model_type":"gemma4","text_config":{"num_hiden_layers":4}}`:                                           {`the config has "text_config.num_hiden_layers", which gemma4_text does not read: did you mean "num_hidden_layers"?`, ""},
		`{"model_type":"llava","vision_config":{"model_type":"clip_vision_model","hiden_size":512}}`:             {`the config has "vision_config.hiden_size", which llava does not read: did you mean "hidden_size"?`, "LlavaForConditionalGeneration"},
		`{"model_type":"llama","dtype":"float64"}`:                                                               {"dtype F64: weights are counted so if they keep the checkpoint's type; activations are counted in bf16", ""},
		`{"model_type":"llama","dtype":"float8_e4m3fn"}`:                                                         {"dtype F8_E4M3: weights are counted so, and without gradients", ""},
		`{"model_type":"kimi_k25","architectures":["KimiK25ForConditionalGeneration"],"text_config":{"model_type":"kimi_k2"},"auto_map":{"AutoModel":"modeling_kimi_k25.KimiK25ForConditionalGeneration"}}`: {`with trust_remote_code, Transformers builds a "KimiK25ForConditionalGeneration" of the repository's own code`, "Kimi_K25ForConditionalGeneration"},
	} {
		g, err := hf.FromConfig("config.json", []byte(config))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if notes := strings.Join(g.Warnings, "\n"); !strings.Contains(notes, want[0]) || g.AutoClass != want[1] {
			t.Errorf("%s: loaded by %q, notes %q, want %q and %q", config, g.AutoClass, notes, want[1], want[0])
		}
	}
}

// readAs reports a config that the table refuses and a hand-written reader has exact.
func (sample *typeSample) readAs(t *testing.T) bool {
	t.Helper()
	graph, err := hf.FromConfig("config.json", sample.Config)
	if err != nil {
		return false
	}
	var lines []string
	owner := make(map[string]string)
	for _, names := range graph.Ties {
		for _, name := range names[1:] {
			owner[name] = names[0]
		}
	}
	for i := range graph.Layers {
		for _, p := range graph.Layers[i].Params {
			if name := modelgraph.FullName(graph.Layers[i].Name, p.Name); owner[name] == "" {
				lines = append(lines, name+" "+strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Shape), " ", ","), "[]"))
			}
		}
	}
	if graph.ParamCount() != sample.Params {
		t.Errorf("wrong by its reader: %.200s: %d parameters, Transformers has %d", sample.Config, graph.ParamCount(), sample.Params)
	}
	return linesDigest(lines) == sample.Tensors
}

// TestOuterField: a backbone that the file does not describe has the channels of the config around
// it, as DetrConfig.__post_init__ gives them. One that it describes has its own.
func TestOuterField(t *testing.T) {
	for text, want := range map[string]string{
		`{"model_type":"detr"}`:                  "64,3,7,7",
		`{"model_type":"detr","num_channels":5}`: "64,5,7,7",
		`{"model_type":"detr","num_channels":5,"backbone_config":{"model_type":"timm_backbone","backbone":"resnet50","out_indices":[1,2,3,4],"use_pretrained_backbone":false}}`: "64,3,7,7",
	} {
		tree, err := readTypes(tables.Newest, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if first := typeFacts(tree)["tensors"][0]; !strings.HasSuffix(first, ".conv1.weight "+want) {
			t.Errorf("%s: first tensor %q, want sizes %s", text, first, want)
		}
	}
}

// TestFieldsOfFile: a T5Config takes the file's is_gated_act, also where the file has another
// activation than feed_forward_proj names.
func TestFieldsOfFile(t *testing.T) {
	for _, more := range []string{"", `,"dense_act_fn":"gelu_new"`} {
		tree, err := readTypes(tables.Newest, []byte(`{"model_type":"t5","architectures":["T5EncoderModel"],"num_layers":1,"is_gated_act":true`+more+`}`))
		if err != nil {
			t.Fatalf("%s: %v", more, err)
		}
		if names := strings.Join(typeFacts(tree)["tensors"], " "); !strings.Contains(names, "wi_0.weight 2048,512") || strings.Contains(names, "wi.weight") {
			t.Errorf("%s: %s, want gated layers", more, names)
		}
	}
}
