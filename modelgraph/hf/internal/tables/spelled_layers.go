package tables

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func deepseekV4(said fieldsOf, c *ConfigClass) {
	n := said.number("num_hidden_layers", c)
	if ratios, ok := said.take("compress_ratios").([]any); ok {
		kinds := map[float64]string{0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
		said.list("layer_types", min(n, float64(len(ratios))), func(i int) any {
			ratio, _ := number(ratios[i])
			return kinds[ratio]
		})
	}
	if hashed, ok := number(said.take("num_hash_layers")); ok {
		said.firstOnes("mlp_layer_types", n, hashed, "hash_moe", "moe")
	}
	for from, kind := range map[string]string{"compress_rate_csa": "compressed_sparse_attention", "compress_rate_hca": "heavily_compressed_attention"} {
		if rate := said.take(from); rate != nil {
			rates := map[string]any{"compressed_sparse_attention": 4.0, "heavily_compressed_attention": 128.0}
			if given, ok := said["compress_rates"].(map[string]any); ok {
				maps.Copy(rates, given)
			}
			rates[kind] = rate
			said["compress_rates"] = rates
		}
	}
	if dim, ok := number(said.take("qk_rope_head_dim")); ok && said["partial_rotary_factor"] == nil {
		said["partial_rotary_factor"] = dim / said.number("head_dim", c)
	}
}

func kimiLinear(said fieldsOf, c *ConfigClass) {
	said.take("head_dim") // as glmMoeDsa
	n := said.number("num_hidden_layers", c)
	linear, _ := said.take("linear_attn_config").(map[string]any)
	for from, to := range map[string]string{"head_dim": "linear_head_dim", "num_heads": "linear_num_heads", "short_conv_kernel_size": "linear_conv_kernel_dim"} {
		if v := linear[from]; v != nil {
			said[to] = v
		}
	}
	full, isFull := linear["full_attn_layers"].([]any)
	if _, isLinear := linear["kda_layers"].([]any); isFull && isLinear {
		said.list("layer_types", n, func(i int) any {
			if yes, _ := ofTwo("in", float64(i+1), full); yes == true {
				return "full_attention"
			}
			return "linear_attention"
		})
	}
	if dense, ok := number(said.take("first_k_dense_replace")); ok {
		said.firstOnes("mlp_layer_types", n, dense, "dense", "sparse")
	}
}

// firstOnes sets a field to one text for the first of n layers, and to another for the rest.
func (said fieldsOf) firstOnes(name string, n, first float64, text, rest string) {
	said.list(name, n, func(i int) any {
		if float64(i) < first {
			return text
		}
		return rest
	})
}

func minimaxM3(said fieldsOf, _ *ConfigClass) {
	sparse, _ := said.take("sparse_attention_config").(map[string]any)
	for to, from := range map[string]string{
		"index_n_heads": "sparse_num_index_heads", "index_head_dim": "sparse_index_dim", "index_block_size": "sparse_block_size",
		"index_topk_blocks": "sparse_topk_blocks", "index_local_blocks": "sparse_local_block",
	} {
		if v, ok := sparse[from]; ok {
			said[to] = v
		}
	}
	said.chosen("layer_types", sparse["sparse_attention_freq"], "minimax_m3_sparse", "full_attention")
	said.chosen("mlp_layer_types", said.take("moe_layer_freq"), "sparse", "dense")
	said["hidden_act"] = "silu" // the class sets it
}

func step3p7(said fieldsOf, c *ConfigClass) {
	if layers, ok := said["per_layer_config"].(map[string]any); ok {
		sliding := map[string]any{"num_attention_heads": said["num_sliding_attention_heads"]}
		if !slices.ContainsFunc(slices.Collect(maps.Values(layers)), func(layer any) bool { return !DeepEqual(layer, sliding) }) {
			delete(said, "per_layer_config") // the class makes the same
		}
	}
	n := said.number("num_hidden_layers", c)
	more, _ := number(said.take("num_nextn_predict_layers"))
	for _, name := range []string{"layer_types", "mlp_layer_types", "swiglu_limits", "swiglu_limits_shared"} {
		if list, ok := said[name].([]any); ok && more > 0 && float64(len(list)) == n+more {
			said[name] = list[:int(n)]
		}
	}
	said.list("layer_types", n, func(int) any { return "full_attention" })
	if sparse := said.take("moe_layers_enum"); sparse != nil {
		list, _ := sparse.([]any)
		if text, ok := sparse.(string); ok {
			for part := range strings.SplitSeq(text, ",") {
				if i, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
					list = append(list, float64(i))
				}
			}
		}
		said.list("mlp_layer_types", n, func(i int) any {
			if yes, _ := ofTwo("in", float64(i), list); yes == true {
				return "sparse"
			}
			return "dense"
		})
	}
	if other, ok := said.take("attention_other_setting").(map[string]any); ok && other["num_attention_heads"] != nil && said["num_sliding_attention_heads"] == nil {
		said["num_sliding_attention_heads"] = other["num_attention_heads"]
	}
}
