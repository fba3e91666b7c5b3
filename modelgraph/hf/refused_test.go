package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// kimi is the language model of Kimi-K2, with other sizes.
var kimi = fields{
	"architectures": []string{"DeepseekV3ForCausalLM"}, "model_type": "kimi_k2", "tie_word_embeddings": false,
	"auto_map": fields{
		"AutoConfig": "configuration_deepseek.DeepseekV3Config", "AutoModel": "modeling_deepseek.DeepseekV3Model",
		"AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM",
	},
	"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
	"vocab_size": 128, "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 24,
	"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1,
	"moe_layer_freq": 1, "aux_loss_alpha": 0.001, "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "topk_method": "noaux_tc",
	"scoring_func": "sigmoid", "seq_aux": true, "num_nextn_predict_layers": 0, "routed_scaling_factor": 2.827,
	"max_position_embeddings": 4096, "rope_theta": 50000.0, "attention_bias": false,
}

// TestUnknownFields: fields that the rules do not know are refused by name, or known to be
// harmless.
func TestUnknownFields(t *testing.T) {
	llama := fields{
		"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 128, "tie_word_embeddings": false, "max_position_embeddings": 64,
	}
	novel := having(llama, "model_type", "novel")
	named := having(novel, "architectures", []string{"LlamaForCausalLM"})
	code := func(class string) fields { return fields{"AutoModelForCausalLM": "modeling_novel." + class} }
	for name, c := range map[string]struct {
		config fields
		want   string
	}{
		"known":                  {llama, ""},
		"no field of a llama":    {having(llama, "some_note", 7), ""},
		"experts in a llama":     {having(llama, "num_experts", 8), `num_experts: 8: a LlamaForCausalLM of model_type "llama"`},
		"no experts in a llama":  {having(llama, "num_experts", 0), ""},
		"layers of their own":    {having(llama, "per_layer_config", fields{"0": fields{"intermediate_size": 8}}), "per_layer_config: "},
		"a tower beside a llama": {having(llama, "vision_config", fields{"hidden_size": 8}), "vision_config: "},
		"code of its own name":   {having(llama, "auto_map", code("NovelForCausalLM")), `"NovelForCausalLM" of its own code`},
		"a copy of the code":     {having(llama, "auto_map", code("LlamaForCausalLM")), ""},
		"a copy with a field":    {having(having(llama, "auto_map", code("LlamaForCausalLM")), "some_note", 7), "some_note: 7: "},

		"another tower":       {fields{"model_type": "gemma3", "vision_config": fields{"model_type": "clip_vision_model"}}, ""},
		"another text model":  {fields{"model_type": "gemma3", "text_config": fields{"model_type": "gemma2"}}, `text_config.model_type: "gemma2"`},
		"experts in the text": {fields{"model_type": "gemma3", "text_config": fields{"num_experts": 8}}, `text_config.num_experts: 8: `},

		"unknown":               {novel, `model_type "novel" is not known, and its fields alone`},
		"unknown with fields":   {having(having(novel, "num_experts", 8), "clip_qkv", 6), `num_experts 8, clip_qkv 6 are no fields of a llama`},
		"no type":               {having(llama, "model_type", nil), "there is no model_type"},
		"another's class":       {named, ""},
		"another's, not tied":   {lacking(named, "tie_word_embeddings"), "tie_word_embeddings: it is absent, and its default for model_type \"novel\""},
		"another's, no KV":      {lacking(named, "num_key_value_heads"), "num_key_value_heads: it is absent"},
		"another's, a field":    {having(named, "some_note", 7), "some_note: 7: "},
		"another's, own code":   {having(named, "auto_map", code("NovelForCausalLM")), `model_type "novel" is not known`},
		"against its own type":  {having(llama, "architectures", []string{"Qwen2ForCausalLM"}), `"Qwen2ForCausalLM" is not a class of llama`},
		"a field to be quoted":  {having(novel, "num_experts\u009b\n"+strings.Repeat("x", 1_000_000), 8), `"num_experts\u009b\nxxx`},
		"a long name":           {having(llama, "model_type", strings.Repeat("x", 1_000_000)), `xxx…" is not known`},
		"a long class":          {having(llama, "architectures", []string{strings.Repeat("x", 1_000_000)}), `xxx…`},
		"Kimi-K2":               {kimi, ""},
		"Kimi-K2, other layers": {having(kimi, "moe_layer_freq", 2), "moe_layer_freq: 2: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromConfig("config.json", asJSON(t, c.config))
			if len(fmt.Sprint(err)) > 3000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, refused := errors.AsType[*modelgraph.SyntaxError](err); err != nil && !refused && !strings.Contains(err.Error(), "safetensors") {
				t.Errorf("%v names no way out", err)
			}
		})
	}
}

// TestForeignClass: a class under another model_type gives the class's graph.
func TestForeignClass(t *testing.T) {
	own := fixtures.Must(FromConfig("config.json", asJSON(t, having(kimi, "model_type", "deepseek_v3"))))(t)
	g := fixtures.Must(FromConfig("config.json", asJSON(t, kimi)))(t)
	if g.ParamCount() != own.ParamCount() || g.Class != own.Class || len(g.Warnings) != len(own.Warnings)+1 ||
		!slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, "DeepseekV3ForCausalLM") }) {
		t.Errorf("%d parameters, %s, %q; as deepseek_v3 %d", g.ParamCount(), g.Class, g.Warnings, own.ParamCount())
	}
}

func having(c fields, name string, v any) fields {
	out := maps.Clone(c)
	out[name] = v
	return out
}

func lacking(c fields, name string) fields {
	out := maps.Clone(c)
	delete(out, name)
	return out
}

// TestClassesDiffer: a class is one family's, so that its name finds it.
func TestClassesDiffer(t *testing.T) {
	owner := map[string]*family{}
	for _, f := range families {
		for _, class := range f.classes {
			if o := owner[class]; o != nil && o != f {
				t.Errorf("%s is a class of %v and %v", class, o.types, f.types)
			}
			owner[class] = f
		}
	}
}
