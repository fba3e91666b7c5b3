package hf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestStoredFromConfig: a config alone gives the tensors of a folder of its format, name by name.
func TestStoredFromConfig(t *testing.T) {
	const fp8 = `,"quantization_config":{"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[4,8]%s}}`
	for name, config := range map[string]string{
		"qwen3": `{"model_type":"qwen3","hidden_size":20,"intermediate_size":12,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":4,
			"num_key_value_heads":1,"vocab_size":32` + fmt.Sprintf(fp8, ""),
		"qwen3 with a list": `{"model_type":"qwen3","hidden_size":16,"intermediate_size":12,"num_hidden_layers":2,"num_attention_heads":2,"head_dim":4,
			"num_key_value_heads":1,"vocab_size":32` + fmt.Sprintf(fp8, `,"modules_to_not_convert":["lm_head","model.layers.0","down_proj"]`),
		"experts": `{"model_type":"qwen3_moe","hidden_size":8,"moe_intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":4,
			"num_key_value_heads":1,"vocab_size":32,"num_experts":3,"num_experts_per_tok":2` + fmt.Sprintf(fp8, ""),
		"latents": `{"model_type":"deepseek_v3","hidden_size":24,"intermediate_size":16,"moe_intermediate_size":12,"num_hidden_layers":2,"num_attention_heads":2,
			"num_key_value_heads":2,"vocab_size":32,"n_routed_experts":4,"n_shared_experts":1,"num_experts_per_tok":2,"first_k_dense_replace":1,"q_lora_rank":8,
			"kv_lora_rank":8,"qk_nope_head_dim":4,"qk_rope_head_dim":4,"v_head_dim":4,"n_group":1,"topk_group":1` + fmt.Sprintf(fp8, ""),
		"mxfp4": `{"model_type":"gpt_oss","hidden_size":64,"intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":8,
			"num_key_value_heads":1,"vocab_size":32,"num_local_experts":4,"quantization_config":{"quant_method":"mxfp4"}}`,
		"awq": `{"model_type":"qwen2","hidden_size":32,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":2,
			"num_key_value_heads":1,"vocab_size":32,"quantization_config":{"quant_method":"awq","bits":4,"group_size":16,"version":"gemm"}}`,
		"gptq": `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":2,
			"num_key_value_heads":1,"vocab_size":32,"quantization_config":{"quant_method":"gptq","bits":8,"group_size":-1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			alone := fixtures.Must(FromConfig("config.json", []byte(config)))(t)
			folder := fixtures.Must(FromCheckpoint(llamaFolder(t, config, func([]stored) []stored { return storedLike(alone) })))(t)
			if alone.Quantized == "" || alone.Quantized != folder.Quantized {
				t.Errorf("%q, the folder %q", alone.Quantized, folder.Quantized)
			}
			if a, b := tensorSet(alone), tensorSet(folder); !slices.Equal(a, b) {
				t.Errorf("the config has\n%s\nthe folder\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
			if !slices.ContainsFunc(alone.Warnings, func(word string) bool { return strings.Contains(word, "counted as the elements that are stored") }) {
				t.Errorf("%q", alone.Warnings)
			}
		})
	}
}

// storedLike are a checkpoint's tensors: experts that are floats lie one by one.
func storedLike(graph *modelgraph.Graph) []stored {
	var out []stored
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if tensor.Owner != "" {
				continue
			}
			full := modelgraph.FullName(layer.Name, tensor.Name)
			before, kind, found := strings.Cut(full, ".experts.")
			if !found || graph.Quantized != "fp8" {
				out = append(out, st(full, tensor.DType, tensor.Shape...))
				continue
			}
			weight, scale := strings.CutSuffix(kind, "_scale_inv")
			end := ".weight"
			if scale {
				end = ".weight_scale_inv"
			}
			names, rows := []string{weight}, tensor.Shape[1]
			if weight == "gate_up_proj" {
				names, rows = []string{"gate_proj", "up_proj"}, rows/2
			}
			for expert := range tensor.Shape[0] {
				for _, name := range names {
					out = append(out, st(fmt.Sprintf("%s.experts.%d.%s%s", before, expert, name, end), tensor.DType, rows, tensor.Shape[2]))
				}
			}
		}
		for j := range layer.Buffers {
			if buffer := &layer.Buffers[j]; buffer.Persistent {
				out = append(out, st(modelgraph.FullName(layer.Name, buffer.Name), buffer.DType, buffer.Shape...))
			}
		}
	}
	return out
}

func tensorSet(graph *modelgraph.Graph) []string {
	var out []string
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			tensor := &graph.Layers[i].Params[j]
			out = append(out, fmt.Sprintf("%s %v%v", modelgraph.FullName(graph.Layers[i].Name, tensor.Name), tensor.DType, tensor.Shape))
		}
	}
	slices.Sort(out)
	return out
}

// TestPublishedStored: published sizes of quantised checkpoints, without layers for more tokens.
func TestPublishedStored(t *testing.T) {
	for name, want := range map[string]float64{
		"deepseek-v3": 625.9, // 671 GB of fp8, embeddings and head in bf16
		"gpt-oss-20b": 12.82, // model.safetensors.index.json: 13,761,264,768 bytes
	} {
		graph := fixture(t, name)
		if got := float64(graph.ParamBytes()) / (1 << 30); got < want-.5 || got > want+2 {
			t.Errorf("%s: %.2f GiB, want %.2f", name, got, want)
		}
	}
}
