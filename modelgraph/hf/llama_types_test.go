package hf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestRemoteLlamas: types that Transformers lacks have the tensors of their repositories' code.
func TestRemoteLlamas(t *testing.T) {
	const norms = " input_layernorm.weight[64] post_attention_layernorm.weight[64]"
	for _, tt := range []struct {
		modelType string
		more      fields
		want      string // the first block's tensors
	}{
		{
			"baichuan",
			fields{"num_key_value_heads": 4, "max_position_embeddings": 64},
			"self_attn.W_pack.weight[192 64] self_attn.o_proj.weight[64 64] mlp.gate_proj.weight[160 64] mlp.up_proj.weight[160 64] mlp.down_proj.weight[64 160]" + norms,
		},
		{
			"internlm3",
			fields{"qkv_bias": true, "head_dim": 8},
			"self_attn.q_proj.weight[32 64] self_attn.q_proj.bias[32] self_attn.k_proj.weight[16 64] self_attn.k_proj.bias[16] " +
				"self_attn.v_proj.weight[16 64] self_attn.v_proj.bias[16] self_attn.o_proj.weight[64 32] " +
				"mlp.gate_proj.weight[160 64] mlp.up_proj.weight[160 64] mlp.down_proj.weight[64 160]" + norms,
		},
		{
			"internlm3",
			fields{"bias": true},
			"self_attn.q_proj.weight[64 64] self_attn.k_proj.weight[32 64] self_attn.v_proj.weight[32 64] self_attn.o_proj.weight[64 64] self_attn.o_proj.bias[64] " +
				"mlp.gate_proj.weight[160 64] mlp.gate_proj.bias[160] mlp.up_proj.weight[160 64] mlp.up_proj.bias[160] mlp.down_proj.weight[64 160] mlp.down_proj.bias[64]" + norms,
		},
		{
			"minicpm",
			fields{"tie_word_embeddings": true},
			"self_attn.q_proj.weight[64 64] self_attn.k_proj.weight[32 64] self_attn.v_proj.weight[32 64] self_attn.o_proj.weight[64 64] " +
				"mlp.gate_proj.weight[160 64] mlp.up_proj.weight[160 64] mlp.down_proj.weight[64 160]" + norms,
		},
	} {
		g, err := FromConfig("config.json", small(t, tt.modelType, tt.more))
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, line := range graphTensors(g, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params }) {
			if name, ok := strings.CutPrefix(line, "model.layers.0."); ok {
				got = append(got, strings.NewReplacer(" ", "", ",", " ").Replace(name))
			}
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.modelType, d)
		}
	}
}

// TestLlamaTypeCosts: differences of the types other than their tensors.
func TestLlamaTypeCosts(t *testing.T) {
	alibi := fields{"num_key_value_heads": 4}
	for _, tt := range []struct {
		modelType string
		more      fields
		want      modelgraph.Attention
	}{
		{"baichuan", alibi, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 4, HeadDim: 16, Rope: true, Fused: true, Eager: true, ScoreBias: "alibi"}},
		{"eurobert", nil, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Rope: true, Bidirectional: true}},
		{
			"cwm",
			fields{"sliding_window": 9, "layer_types": []string{"sliding_attention", "full_attention", "full_attention", "full_attention"}},
			modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 128, Rope: true, Window: 9},
		},
		{"cwm", fields{"num_hidden_layers": 1}, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 128, Rope: true}},
		{"ministral", nil, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Rope: true, Window: 4096}},
		{"ministral", fields{"sliding_window": nil}, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Rope: true}},
		{"ministral3", nil, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 128, Rope: true}},
		{"ministral", fields{"sliding_window": 9}, modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Rope: true, Window: 9}},
	} {
		if d := cmp.Diff(tt.want, ops[modelgraph.Attention](t, small(t, tt.modelType, tt.more))[0]); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.modelType, d)
		}
	}
}

// TestLlamaTypeDefaults: heads that a config does not give are the type's own (its config class in
// Transformers, or in its repository).
func TestLlamaTypeDefaults(t *testing.T) {
	defaults := map[string][2]int64{
		"baichuan": {160, 10}, "cwm": {8, 128}, "ernie4_5": {2, 128}, "eurobert": {160, 10}, "granite": {160, 10},
		"deepseek": {160, 10}, "internlm": {160, 10}, "mimo": {32, 10},
		"helium": {20, 0}, "internlm3": {32, 10}, "minicpm": {160, 10}, "ministral": {8, 10}, "ministral3": {8, 128},
		"seed_oss": {8, 128}, "smollm3": {4, 10}, "xverse": {160, 10},
	}
	for _, l := range llamaTypes {
		c := asFields(t, small(t, l.model, fields{"hidden_size": 1600, "num_attention_heads": 160, "tie_word_embeddings": false}))
		delete(c, "num_key_value_heads")
		if l.model == "deepseek" { // no known default: it must be set
			c["num_key_value_heads"] = 160
		}
		want, ok := defaults[l.model]
		if want[1] == 0 { // helium's 128 must be hidden_size over heads
			c["head_dim"], want[1] = 10, 10
		}
		a := ops[modelgraph.Attention](t, asJSON(t, c))[0]
		if got := [2]int64{a.KVHeads, a.HeadDim}; !ok || got != want {
			t.Errorf("%s: %d KV heads of %d, want %v", l.model, a.KVHeads, a.HeadDim, want)
		}
	}
}

// TestUntiedT5: a head that the class ties and the files do not gives a warning.
func TestUntiedT5(t *testing.T) {
	for tied, want := range map[bool]int{true: 0, false: 1} {
		g, err := FromConfig("config.json", asJSON(t, fields{"model_type": "t5", "tie_word_embeddings": tied, "dtype": "bfloat16", "architectures": []string{"T5ForConditionalGeneration"}}))
		if err != nil || len(g.Warnings) != want {
			t.Errorf("tied %v: %v, %q", tied, err, g.Warnings)
		}
	}
}
