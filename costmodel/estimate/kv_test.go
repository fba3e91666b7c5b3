package estimate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// kvBytes is the KV cache of every unit of a config after prompt + grown tokens in one sequence.
func kvBytes(t *testing.T, config string, prompt, grown int64) []int64 {
	t.Helper()
	g := fixtures.Must(hf.FromConfig("config.json", []byte(config)))(t)
	w := fixtures.Must(estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Infer, Seq: prompt, NewTokens: grown, Precision: costmodel.FP16True}))(t)
	table := fixtures.Must(estimate.Table(g, w))(t)
	var out []int64
	for u := range table.Units {
		var n int64
		for i := range table.Units[u].Layers {
			s := &table.Units[u].Layers[i]
			n += s.KV + s.CacheGrowth
		}
		if n > 0 {
			out = append(out, n)
		}
	}
	return out
}

func sum(v []int64) (n int64) {
	for _, x := range v {
		n += x
	}
	return n
}

// TestPublishedKVCaches checks the caches against engines' logs, to the printed digits: L1 in
// ggml-org/llama.cpp#6122, L3 in ikawrakow/ik_llama.cpp#235, V3 in vllm-project/vllm#17122,
// Mistral-Small-24B in the documents of llm-d-planner.
func TestPublishedKVCaches(t *testing.T) {
	// L1: Command-R-v01 in llama.cpp, 12 layers on one GPU and 28 on the other.
	l1 := kvBytes(t, `{"model_type": "llama", "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64,
		"num_key_value_heads": 64, "vocab_size": 256000, "max_position_embeddings": 131072}`, 4096, 0)
	if a, b := sum(l1[:12]), sum(l1[12:]); len(l1) != 40 || a != 1536<<20 || b != 3584<<20 {
		t.Errorf("L1: %d layers, %d + %d bytes", len(l1), a, b)
	}
	// L3: DeepSeek-R1's latent cache in f16.
	l3 := kvBytes(t, `{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
		"num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
		"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 129280,
		"max_position_embeddings": 163840}`, 32768, 0)
	t.Logf("KV cache, L1: %d + %d MiB; L3: %d MiB", sum(l1[:12])>>20, sum(l1[12:])>>20, sum(l3)>>20)
	if got := sum(l3); len(l3) != 61 || got != 2196<<20 {
		t.Errorf("L3: %d layers, %d bytes, want 2196 MiB", len(l3), got)
	}
	for _, c := range []struct {
		name, config string
		tokens       int64
		want         string
	}{
		{"V3", `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
			"num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072}`, 158656, "19.37"},
		{"Mistral-Small-24B", `{"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40, "num_attention_heads": 32,
			"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "sliding_window": null, "max_position_embeddings": 32768}`, 184832, "28.20"},
	} {
		// As one prompt, and grown by generation.
		for _, prompt := range []int64{c.tokens, 1000} {
			got := sum(kvBytes(t, c.config, prompt, c.tokens-prompt))
			s := fmt.Sprintf("%.2f", float64(got)/(1<<30))
			t.Logf("KV cache, %s, %d tokens: %s GiB", c.name, c.tokens, s)
			if s != c.want {
				t.Errorf("%s, a prompt of %d tokens: %s GiB, want %s", c.name, prompt, s, c.want)
			}
		}
	}
}

// TestNoCache: models whose causal attention takes no cache in Transformers 5.24 have none, and other models have
// one: a forward without gradients, with use_cache, made a Cache or did not (fixtures/oracle/README.md).
func TestNoCache(t *testing.T) {
	for config, cached := range map[string]bool{
		`{"model_type": "clip_text_model", "architectures": ["CLIPTextModel"]}`:                                      false,
		`{"model_type": "clip_text_model", "architectures": ["CLIPTextModelWithProjection"]}`:                        false,
		`{"model_type": "clip", "architectures": ["CLIPModel"]}`:                                                     false,
		`{"model_type": "clipseg", "architectures": ["CLIPSegModel"]}`:                                               false,
		`{"model_type": "metaclip_2", "architectures": ["MetaClip2Model"]}`:                                          false,
		`{"model_type": "openai-gpt", "architectures": ["OpenAIGPTLMHeadModel"]}`:                                    false,
		`{"model_type": "megatron-bert", "architectures": ["MegatronBertForCausalLM"]}`:                              false,
		`{"model_type": "megatron-bert", "architectures": ["MegatronBertForCausalLM"], "is_decoder": true}`:          true,
		`{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}`:                                               true,
		`{"model_type": "mpt", "architectures": ["MptForCausalLM"]}`:                                                 true,
		`{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "n_positions": 512, "num_layers": 2}`: true,
	} {
		if got := sum(kvBytes(t, config, 64, 0)); got > 0 != cached {
			t.Errorf("%s: a KV cache of %d bytes", config, got)
		}
	}
	g := fixtures.Must(hf.FromConfig("config.json", []byte(`{"model_type": "openai-gpt", "architectures": ["OpenAIGPTLMHeadModel"]}`)))(t)
	if _, err := estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Infer, Seq: 64, NewTokens: 8}); err == nil || !strings.Contains(err.Error(), "no KV cache") {
		t.Errorf("GPT-1 generates 8 tokens: %v", err)
	}
}
