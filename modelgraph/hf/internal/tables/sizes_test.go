package tables_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestTypesSizes: the table refuses numbers that no model runs with, in all types and in objects inside. It names
// the field of the file, the release and the next step.
func TestTypesSizes(t *testing.T) {
	for config, want := range map[string][2]string{
		`{"model_type":"opt","num_attention_heads":0,"transformers_version":"5.17.0"}`:               {"num_attention_heads", "0 is not a size: Transformers 5.17 needs 1 or more here; correct the field"},
		`{"model_type":"mbart","encoder_attention_heads":-2}`:                                        {"encoder_attention_heads", "-2 is not a size"},
		`{"model_type":"blip-2","vision_config":{"num_attention_heads":0}}`:                          {"vision_config.num_attention_heads", "0 is not a size"},
		`{"model_type":"blip-2","vision_config":{"num_attention_heads":5}}`:                          {"vision_config.num_attention_heads", "5 heads do not divide 1408 (hidden_size), which a Blip2VisionModel of Transformers 5.24 needs; correct one of the fields"},
		`{"model_type":"roberta","num_attention_heads":7}`:                                           {"num_attention_heads", "7 heads do not divide 768 (hidden_size)"},
		`{"model_type":"opt","hidden_size":-768}`:                                                    {"hidden_size", "-768 is not a size"},
		`{"model_type":"mpt","d_model":2048,"n_heads":7}`:                                            {"n_heads", "7 heads do not divide 2048 (d_model), which a MptModel of Transformers 5.24 needs"},
		`{"model_type":"mra","num_attention_heads":true}`:                                            {"num_attention_heads", "true is not a size"},
		`{"model_type":"opt","num_attention_heads":"12"}`:                                            {"num_attention_heads", "\"12\" is not a size"},
		`{"model_type":"albert","num_hidden_layers":0}`:                                              {"num_hidden_layers", "0: devmap counts layers that share tensors from 1 on"},
		`{"model_type":"albert","num_hidden_layers":-1}`:                                             {"num_hidden_layers", "-1: devmap counts layers"},
		`{"model_type":"mpnet","vocab_size":0}`:                                                      {"vocab_size", "0 is not a size"},
		`{"model_type":"beit","patch_size":0}`:                                                       {"patch_size", "0 is not a size"},
		`{"model_type":"electra","embedding_size":0}`:                                                {"embedding_size", "0 is not a size"},
		`{"model_type":"dinov3_vit","num_hidden_layers":-1}`:                                         {"num_hidden_layers", "-1 is not a size: Transformers 5.24 needs 0 or more here"},
		`{"model_type":"lara_mini","architectures":["LaraMiniForCausalLM"],"num_attention_heads":0}`: {"num_attention_heads", "0 is not a size"},
		`{"model_type":"clip_vision_model","image_size":0}`:                                          {"image_size", "0 is not a side from 1 to 65536 pixels"},
		`{"model_type":"siglip_vision_model","image_size":8}`:                                        {"image_size", "8 × 8 pixels hold no patch of 16 × 16"},
		`{"model_type":"mixtral","num_local_experts":0}`:                                             {"num_local_experts", "0 is not a size: Transformers 5.24 needs 1 or more"},
		`{"model_type":"olmoe","num_experts":0}`:                                                     {"num_experts", "0 is not a size"},
		`{"model_type":"mixtral","num_experts_per_tok":1.5}`:                                         {"num_experts_per_tok", "a token cannot go to 1.5 of 8 experts"},
		`{"model_type":"mixtral","num_attention_heads":8192,"num_key_value_heads":8192}`:             {"num_attention_heads", "8192 heads are more than the 4096 numbers of hidden_size"},
		`{"model_type":"glm4","partial_rotary_factor":1.5}`:                                          {"partial_rotary_factor", "1.5 is not a share from 0 to 1, which Transformers 5.24 needs"},
		`{"model_type":"glm","partial_rotary_factor":"x"}`:                                           {"partial_rotary_factor", "\"x\" is not a share"},
		`{"model_type":"stablelm","rope_parameters":{"partial_rotary_factor":2}}`:                    {"rope_parameters.partial_rotary_factor", "2 is not a share"},
		`{"model_type":"stablelm","rope_parameters":0}`:                                              {"rope_parameters", "0 is not an object, as Transformers 5.24 needs"},
		`{"model_type":"gpt_neox","rotary_pct":1.5}`:                                                 {"rotary_pct", "1.5 is not a share"},
		`{"model_type":"codegen","n_positions":0}`:                                                   {"n_positions", "0 is not a size"},
		`{"model_type":"pop2piano","tie_word_embeddings":false,"d_ff":0}`:                            {"d_ff", "0 is not a size"},
	} {
		_, err := hf.FromConfig("config.json", []byte(config))
		var refused *modelgraph.SyntaxError
		if !errors.As(err, &refused) || refused.Place != want[0] || !strings.Contains(refused.Msg, want[1]) {
			t.Errorf("%s: %v, want %q: %q", config, err, want[0], want[1])
		}
	}
	for _, config := range []string{ // none of something is a model
		`{"model_type":"dinov3_vit","num_hidden_layers":0}`,
		`{"model_type":"aria","text_config":{"moe_num_shared_experts":0}}`,
		`{"model_type":"mpt","d_model":2048,"n_heads":64}`,
		`{"model_type":"glm4","partial_rotary_factor":0}`,
		`{"model_type":"clip_text_model","pruned_heads":{}}`,
		`{"model_type":"llama4_text","num_local_experts":0,"moe_layers":[]}`,
		`{"model_type":"gpt_neox","partial_rotary_factor":1.5}`, // it has rotary_pct
		`{"model_type":"opt","dropout":0,"pad_token_id":-1}`,
	} {
		if _, err := hf.FromConfig("config.json", []byte(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestTypesElsewhere: types with reviewed operations refuse fields that add modules in other models, as docs/limits.md
// says. They take empty values.
func TestTypesElsewhere(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type":"electra","num_experts":8}`:                                     "num_experts",
		`{"model_type":"roberta","moe_intermediate_size":64}`:                          "moe_intermediate_size",
		`{"model_type":"electra","num_experts":0,"lora_rank":null,"vision_config":{}}`: "",
	} {
		_, err := hf.FromConfig("config.json", []byte(config), tables.Newest.Name)
		var refused *tables.FieldError
		if errors.As(err, &refused) != (want != "") || want == "" && err != nil || want != "" && refused.Field != want {
			t.Errorf("%s: %v, want an error of %q", config, err, want)
		}
	}
}

// TestTypesLabels: the number of labels changes the head alone. The builds of the line had as many labels as an
// MLP keeps inputs.
func TestTypesLabels(t *testing.T) {
	for _, class := range []string{"StableLmForSequenceClassification", "StableLmForTokenClassification"} {
		graph, err := hf.FromConfig("config.json", []byte(`{"model_type":"stablelm","architectures":["`+class+`"],"num_labels":7}`))
		if err != nil {
			t.Fatal(err)
		}
		for i := range graph.Layers {
			if mlp, ok := graph.Layers[i].Op.(modelgraph.MLP); ok && mlp.Extra != 2 {
				t.Errorf("%s: %s keeps %d more inputs, want 2", class, graph.Layers[i].Name, mlp.Extra)
			}
		}
	}
}
