package hf

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

type fields = map[string]any

// small is a config of the family with the given fields on top.
func small(t *testing.T, modelType string, more fields) []byte {
	t.Helper()
	c := fields{
		"model_type": modelType, "hidden_size": 64, "intermediate_size": 160,
		"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
	}
	switch modelType {
	case "qwen3_moe", "deepseek_v3":
		maps.Copy(c, fields{"num_experts_per_tok": 2, "moe_intermediate_size": 48})
	case "mixtral", "gpt_oss":
		c["num_experts_per_tok"] = 2
	}
	if modelType == "deepseek_v3" {
		maps.Copy(c, fields{"q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 24})
	}
	maps.Copy(c, more)
	return asJSON(t, c)
}

func asJSON(t *testing.T, c fields) []byte {
	t.Helper()
	data := fixtures.Must(json.Marshal(c))(t)
	return data
}

// TestFaults: a config that makes no model is refused at the field.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		modelType string
		more      fields
		place     string
	}{
		{"mistral", fields{"num_attention_heads": 0}, "num_attention_heads"},
		{"mistral", fields{"num_key_value_heads": 0}, "num_key_value_heads"},
		{"mistral", fields{"num_key_value_heads": 3}, "num_key_value_heads"},
		{"mistral", fields{"head_dim": 0}, "head_dim"},
		{"mistral", fields{"num_attention_heads": 1 << 40, "head_dim": 1 << 40, "num_key_value_heads": 1}, "head_dim"},
		{"mistral", fields{"sliding_window": -1}, "sliding_window"},
		{"qwen2", fields{"layer_types": []string{"full_attention"}}, "layer_types"},
		{"qwen3", fields{"layer_types": []string{"a", "b", "c", "d"}}, "layer_types[0]"},
		{"gemma2", fields{"num_attention_heads": 6}, "num_attention_heads"},
		{"gemma2", fields{"layer_types": []string{}}, "layer_types"},
		{"gemma3_text", fields{"sliding_window_pattern": 0}, "sliding_window_pattern"},
		{"gpt_oss", fields{"layer_types": make([]string, 5)}, "layer_types"},
		{"gpt_oss", fields{"num_local_experts": 0}, "num_local_experts"},
		{"mixtral", fields{"num_experts_per_tok": 9}, "num_experts_per_tok"},
		{"qwen3_moe", fields{"decoder_sparse_step": 0}, "decoder_sparse_step"},
		{"qwen3_moe", fields{"mlp_only_layers": "all"}, "mlp_only_layers"},
		{"llama", fields{"rope_scaling": "linear"}, "rope_scaling"},
		{"qwen3_vl", fields{"text_config": fields{"rope_parameters": []int{1}}}, "text_config.rope_parameters"},
		{"phi3", fields{"partial_rotary_factor": -0.5}, "partial_rotary_factor"},
		{"phi3", fields{"rope_scaling": fields{"partial_rotary_factor": 1e300}}, "partial_rotary_factor"},
		{"deepseek_v3", fields{"q_lora_rank": 0}, "q_lora_rank"},
		{"deepseek_v3", fields{"qk_rope_head_dim": 0}, "qk_rope_head_dim"},
		{"deepseek_v3", fields{"n_shared_experts": 1 << 40}, "n_shared_experts"},
		{"internvl_vision", fields{"norm_type": strings.Repeat("x", 100_000)}, "norm_type"},
		{"nemotron-nas", nil, "block_configs"},
		{"nemotron-nas", oneBlock(fields{"n_heads_in_group": 0}, fields{"no_op": true}), "block_configs[0].attention.n_heads_in_group"},
		{"nemotron-nas", oneBlock(fields{"n_heads_in_group": 3}, fields{"no_op": true}), "block_configs[0].attention.n_heads_in_group"},
		{"nemotron-nas", oneBlock(fields{}, fields{"no_op": true}), "block_configs[0].attention.n_heads_in_group"},
		{"nemotron-nas", oneBlock(fields{"no_op": true}, fields{}), "block_configs[0].ffn.ffn_mult"},
		{"nemotron-nas", oneBlock(fields{"no_op": true}, fields{"ffn_mult": 1e300}), "block_configs[0].ffn.ffn_mult"},
		{"nemotron-nas", oneBlock(fields{"no_op": true}, fields{"moe": fields{}}), "block_configs[0].ffn.moe"},
	} {
		t.Run(tt.modelType+"/"+tt.place, func(t *testing.T) {
			_, err := FromConfig("config.json", small(t, tt.modelType, tt.more))
			var syn *modelgraph.SyntaxError
			if !errors.As(err, &syn) {
				t.Fatalf("error %v, want a SyntaxError", err)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if syn.Place != tt.place {
				t.Errorf("fault at %q, want %q: %v", syn.Place, tt.place, err)
			}
		})
	}
}

func oneBlock(attention, ffn fields) fields {
	return fields{"num_hidden_layers": 1, "block_configs": []fields{{"attention": attention, "ffn": ffn}}}
}

// TestWindows: which layers look back how far.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		name, modelType string
		more            fields
		want            []int64
	}{
		{"default", "mistral", nil, []int64{4096, 4096, 4096, 4096}},
		{"null", "mistral", fields{"sliding_window": nil}, make([]int64, 4)},
		{"default", "mixtral", nil, make([]int64, 4)},
		{"default", "phi3", nil, make([]int64, 4)},
		{"given", "phi3", fields{"sliding_window": 99}, []int64{99, 99, 99, 99}},
		{"off", "qwen2", fields{"sliding_window": 99}, make([]int64, 4)},
		{"from layer", "qwen2", fields{"sliding_window": 99, "use_sliding_window": true, "max_window_layers": 3}, []int64{0, 0, 0, 99}},
		{"on", "qwen3_moe", fields{"sliding_window": 99, "use_sliding_window": true}, []int64{99, 99, 99, 99}},
		{"alternate", "gemma2", nil, []int64{4096, 0, 4096, 0}},
		{"alternate", "gpt_oss", nil, []int64{128, 0, 128, 0}},
		{"pattern", "gemma3_text", fields{"sliding_window": 99, "sliding_window_pattern": 3}, []int64{99, 99, 0, 99}},
		{"types", "gemma3_text", fields{"sliding_window": 99, "layer_types": []string{"full_attention", "sliding_attention", "full_attention", "full_attention"}}, []int64{0, 99, 0, 0}},
		{"both sides", "gemma3_text", fields{"sliding_window": 512, "use_bidirectional_attention": true}, []int64{257, 257, 257, 257}},
		{"none", "gemma", nil, make([]int64, 4)},
	} {
		t.Run(tt.modelType+"/"+tt.name, func(t *testing.T) {
			var got []int64
			for _, a := range ops[modelgraph.Attention](t, small(t, tt.modelType, tt.more)) {
				got = append(got, a.Window)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestAttentionOps: the differences of the families' attention.
func TestAttentionOps(t *testing.T) {
	gqa := modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Rope: true, Rotation: modelgraph.Rotation{Base: 10_000}}
	with := func(f func(a *modelgraph.Attention)) modelgraph.Attention {
		a := gqa
		f(&a)
		return a
	}
	for modelType, want := range map[string]modelgraph.Attention{
		"qwen2": gqa,
		"qwen3": with(func(a *modelgraph.Attention) { a.HeadDim, a.QKNorm, a.QKEpsilon = 128, modelgraph.RMSNorm, 1e-6 }),
		"gemma": with(func(a *modelgraph.Attention) { a.HeadDim = 256 }),
		"gemma2": with(func(a *modelgraph.Attention) {
			a.HeadDim, a.Window, a.SoftCap, a.ScoreCap, a.Scale, a.Eager = 256, 4096, true, 50, 1/16., true
		}),
		"gemma3_text": with(func(a *modelgraph.Attention) {
			a.HeadDim, a.Window, a.QKNorm, a.QKEpsilon, a.Scale = 256, 4096, modelgraph.GemmaRMSNorm, 1e-6, 1/16.
		}),
		"phi3": with(func(a *modelgraph.Attention) { a.Fused = true }),
		"gpt_oss": with(func(a *modelgraph.Attention) {
			a.HeadDim, a.Window, a.Eager, a.OwnScores, a.Rotation = 64, 128, true, true, modelgraph.Rotation{}
		}),
		"deepseek_v3": {Dim: 64, Heads: 4, KVHeads: 4, HeadDim: 24, ValueDim: 24, QRank: 48, KVRank: 32, RopeDim: 8, Rope: true},
	} {
		if d := cmp.Diff(want, ops[modelgraph.Attention](t, small(t, modelType, nil))[0]); d != "" {
			t.Errorf("%s (-want +got):\n%s", modelType, d)
		}
	}
}

// TestFeedForwardOps: the operations of dense and sparse layers.
func TestFeedForwardOps(t *testing.T) {
	if got := ops[modelgraph.MLP](t, small(t, "phi3", nil))[0]; !got.Fused || !got.Gated {
		t.Errorf("phi3: %+v", got)
	}
	if got := ops[modelgraph.MLP](t, small(t, "gemma2", nil))[0]; got.Activation != "gelu_pytorch_tanh" {
		t.Errorf("gemma2: %+v", got)
	}
	if got := ops[modelgraph.Head](t, small(t, "gemma2", nil))[0]; !got.SoftCap {
		t.Errorf("gemma2: %+v", got)
	}
	deepseek := small(t, "deepseek_v3", fields{"n_shared_experts": 2, "first_k_dense_replace": 1})
	if got := len(ops[modelgraph.MLP](t, deepseek)); got != 1 {
		t.Errorf("deepseek_v3: %d dense layers", got)
	}
	want := modelgraph.MoE{Dim: 64, Hidden: 48, Experts: 256, TopK: 2, SharedHidden: 96, Activation: "silu", FP32Routing: true}
	if d := cmp.Diff(want, ops[modelgraph.MoE](t, deepseek)[0]); d != "" {
		t.Errorf("deepseek_v3 (-want +got):\n%s", d)
	}
}

// ops are the operations of one kind, in module order.
func ops[T modelgraph.Op](t *testing.T, config []byte, release ...string) []T {
	t.Helper()
	g := fixtures.Must(FromConfig("config.json", config, release...))(t)
	var out []T
	for i := range g.Layers {
		if op, ok := g.Layers[i].Op.(T); ok {
			out = append(out, op)
		}
	}
	if len(out) == 0 {
		t.Fatal("none in " + strings.TrimSpace(string(config)))
	}
	return out
}

// TestAttentionByRelease: _supports_sdpa of gemma2 and gptj, and layers of cohere2 that do not
// rotate (modeling_*.py of each release).
func TestAttentionByRelease(t *testing.T) {
	for _, test := range []struct {
		config, release string
		eager, rope     string // of the first four layers
	}{
		{`{"model_type":"gemma2"}`, "5.20", "....", "RRRR"},
		{`{"model_type":"gemma2"}`, "5.21", "EEEE", "RRRR"},
		{`{"model_type":"gptj"}`, "5.23", "EEEE", "RRRR"},
		{`{"model_type":"codegen"}`, "5.24", "....", "RRRR"},
		{`{"model_type":"cohere2"}`, "5.24", "....", "RRR."},
		{`{"model_type":"cohere2","sliding_window":null}`, "5.17", "....", "...."},
	} {
		eager, rope := "", ""
		mark := func(on bool, as string) string { return map[bool]string{true: as, false: "."}[on] }
		for _, op := range ops[modelgraph.Attention](t, []byte(test.config), test.release)[:4] {
			eager, rope = eager+mark(op.Eager, "E"), rope+mark(op.Rope, "R")
		}
		if eager != test.eager || rope != test.rope {
			t.Errorf("%s under %s: eager %s, rotating %s; want %s, %s", test.config, test.release, eager, rope, test.eager, test.rope)
		}
	}
}

// TestReaderDisagrees: a reader's parameter with another shape than the table's is refused by name.
func TestReaderDisagrees(t *testing.T) {
	for wide, want := range map[int64]string{2048: "", 2056: `disagree about "model.layers.1.self_attn.q_norm.weight"`} {
		graph, _, cfg, err := fromConfig(ConfigName, small(t, "olmo2", fields{"hidden_size": 2048}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range graph.Layers {
			for j, tensor := range graph.Layers[i].Params {
				if modelgraph.FullName(graph.Layers[i].Name, tensor.Name) == "model.layers.1.self_attn.q_norm.weight" {
					graph.Layers[i].Params[j].Shape = []int64{wide}
				}
			}
		}
		if _, err = cfg.checked(graph); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", wide, err, want)
		}
	}
}
