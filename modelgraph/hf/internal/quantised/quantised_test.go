package quantised_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

const tinyLlama = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":8,"intermediate_size":16,
	"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"vocab_size":32,"dtype":"bfloat16"}`

// TestNotStoredFromConfig: a format unknown without files counts in the model's type, with a
// warning.
func TestNotStoredFromConfig(t *testing.T) {
	for _, section := range []string{
		`{"quant_method":"awq","bits":4}`, `{"quant_method":"awq","version":"llm-awq"}`, `{"quant_method":"quark"}`, `{"quant_method":"nvfp4"}`,
		`{"quant_method":"fp8","weight_block_size":[128,128],"modules_to_not_convert":["("]}`,
	} {
		g, err := hf.FromConfig("config.json", []byte(strings.TrimSuffix(tinyLlama, "}")+`,"quantization_config":`+section+"}"))
		if err != nil {
			t.Errorf("%s: %v", section, err)
			continue
		}
		if g.Quantized != "" || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "from the config alone they are counted as") {
			t.Errorf("%s: %q, %q", section, g.Quantized, g.Warnings)
		}
	}
}

// TestStoredLlama: Llama-3.1-8B by the methods that most published folders use.
func TestStoredLlama(t *testing.T) {
	const config = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,"torch_dtype":"bfloat16","quantization_config":%s}`
	for section, want := range map[string]string{
		`{"quant_method":"gptq","bits":4,"group_size":128}`:                                  "5.73",
		`{"quant_method":"awq","bits":4,"group_size":128,"version":"gemm"}`:                  "5.73",
		`{"load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true}`: "5.70",
		`{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4"}`:    "6.03",
		`{"quant_method":"bitsandbytes","load_in_8bit":true}`:                                "9.09",
		`{"quant_method":"fp8","weight_block_size":[128,128]}`:                               "9.08",
		`{"quant_method":"fbgemm_fp8","modules_to_not_convert":["lm_head"]}`:                 "9.09",
		`{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"]}`:              "6.03",
		`{"quant_method":"torchao","quant_type":{"default":{"_type":"Int4WeightOnlyConfig","_version":2,"_data":{"group_size":128,"int4_packing_format":"tile_packed_to_4d"}}}}`: "5.81",
	} {
		graph, err := hf.FromConfig("config.json", fmt.Appendf(nil, config, section))
		if err != nil {
			t.Errorf("%s: %v", section, err)
			continue
		}
		if got := fmt.Sprintf("%.2f", float64(graph.ParamBytes())/1e9); got != want {
			t.Errorf("%s: %s GB, want %s: %q", section, got, want, graph.Warnings)
		}
	}
}

// TestStoredRefused: an error names the field that Transformers refuses and the fix. An unknown
// method counts in the model's type, with a warning that names it.
func TestStoredRefused(t *testing.T) {
	for section, want := range map[string]string{
		`{"bits":4,"group_size":128}`:                                               `quantization_config: it has no quant_method, and Transformers refuses such a config: add the method that wrote the weights, as "quant_method": "gptq" or "awq" (fields: bits, group_size)`,
		`{"load_in_4bit":true,"load_in_8bit":true}`:                                 "quantization_config.load_in_8bit: load_in_4bit and load_in_8bit are both true",
		`{"load_in_4bit":true,"bnb_4bit_quant_type":"nf5"}`:                         `quantization_config.bnb_4bit_quant_type: "nf5" is not one of fp4, nf4`,
		`{"load_in_4bit":true,"bnb_4bit_quant_storage":"int4"}`:                     "quantization_config.bnb_4bit_quant_storage",
		`{"load_in_4bit":"yes"}`:                                                    "quantization_config.load_in_4bit",
		`{"quant_method":"gptq","bits":5}`:                                          "quantization_config.bits: 5 is not one of [2 3 4 8]",
		`{"quant_method":"gptq","bits":4,"groupsize":64}`:                           `quantization_config.groupsize: 64: Transformers does not read this name and takes 128; write it as "group_size"`,
		`{"quant_method":"awq","w_bit":8}`:                                          `quantization_config.w_bit: 8: Transformers does not read this name and takes 4; write it as "bits"`,
		`{"quant_method":"gptq"}`:                                                   "quantization_config.bits: gptq needs the bits",
		`{"quant_method":"awq","group_size":0}`:                                     "quantization_config.group_size",
		`{"quant_method":"awq","version":"marble"}`:                                 `quantization_config.version: "marble" is not one of gemm, gemv, gemv_fast, llm-awq`,
		`{"quant_method":"fp8","weight_block_size":[128]}`:                          "quantization_config.weight_block_size",
		`{"quant_method":"fp8","modules_to_not_convert":"lm_head"}`:                 "quantization_config.modules_to_not_convert",
		`{"quant_method":"eetq","weights":"int4"}`:                                  `quantization_config.weights: "int4" is not one of int8`,
		`{"quant_method":"quanto","weights":"int3"}`:                                "quantization_config.weights",
		`{"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":5}}}`: "quant_config.weight_quant_params.nbits",
		`"gptq"`:                           "quantization_config",
		`{"quant_method":"gtpq","bits":4}`: `quantization_config.quant_method: "gtpq" is no method of Transformers 5.24 (did you mean "gptq"?)`,
		`{"quant_method":"mxfp4","dequantize":"yes"}`: "quantization_config.dequantize",
		`{"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"strategy":"group"}}}}`: "config_groups.group_0.weights.group_size",
	} {
		_, err := hf.FromConfig("config.json", []byte(strings.TrimSuffix(tinyLlama, "}")+`,"quantization_config":`+section+"}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", section, err, want)
		}
	}
	for _, method := range []string{"quark", "nvfp4", "vptq", "newest"} {
		graph, err := hf.FromConfig("config.json", []byte(strings.TrimSuffix(tinyLlama, "}")+`,"quantization_config":{"quant_method":"`+method+`"}}`))
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if graph.Quantized != "" || !strings.Contains(strings.Join(graph.Warnings, " "), "stored as "+method+"; from the config alone they are counted as") {
			t.Errorf("%s: %q", method, graph.Warnings)
		}
	}
}

// TestExpertsStored: Transformers 5 has experts in one tensor, which bitsandbytes does not change;
// before, they were linear layers.
func TestExpertsStored(t *testing.T) {
	const config = `{"model_type":"qwen3_moe","hidden_size":64,"moe_intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":32,
		"num_key_value_heads":1,"vocab_size":64,"num_experts":2,"num_experts_per_tok":1,"transformers_version":%q,"quantization_config":{"load_in_4bit":true}}`
	for version, want := range map[string]string{"5.17.0": "mlp.experts.gate_up_proj BF16[2 128 64]", "4.51.3": "mlp.experts.1.up_proj.weight U8[2048 1]"} {
		graph := fixtures.Must(hf.FromConfig("config.json", fmt.Appendf(nil, config, version)))(t)
		var all string
		for i := range graph.Layers {
			for _, tensor := range graph.Layers[i].Params {
				all += fmt.Sprintf("%s %v%v\n", modelgraph.FullName(graph.Layers[i].Name, tensor.Name), tensor.DType, tensor.Shape)
			}
		}
		if !strings.Contains(strings.ReplaceAll(all, "F32", "BF16"), want) {
			t.Errorf("%s: no %s in\n%s", version, want, all)
		}
	}
}
