package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// badSizes are values that no size may have.
var badSizes = []string{
	"null", "NaN", "Infinity", "-Infinity", `"4096"`, "4096.0", "4096.5", "1e3", "-1", "0", "true",
	"1099511627777", "9223372036854775808", "[4096]", `{"a": 1}`,
}

// TestBadSizes: a size that is none is refused at its field, with the value,
// in every family; a default never takes its place.
func TestBadSizes(t *testing.T) {
	fields := map[string]string{
		"gpt2": "n_embd", "t5": "d_model", "whisper": "d_model", "gemma3": "text_config.hidden_size", "internvl": "text_config.hidden_size",
		"paligemma": "text_config.hidden_size", "internvl_chat": "vision_config.hidden_size", "qwen2_5_vl": "vision_config.hidden_size",
	}
	for _, family := range Families() {
		place := fields[family]
		if place == "" {
			place = "hidden_size"
		}
		for _, bad := range badSizes {
			field := `"` + place + `": ` + bad
			if object, name, ok := strings.Cut(place, "."); ok {
				field = `"` + object + `": {"` + name + `": ` + bad + `}`
			}
			_, err := FromConfig("config.json", []byte(`{"model_type": "`+family+`", `+field+`}`))
			var syn *modelgraph.SyntaxError
			if !errors.As(err, &syn) || syn.Place != place || !strings.Contains(syn.Msg, strings.ReplaceAll(bad, " ", "")) {
				t.Errorf("%s: %s: %v", family, field, err)
			}
		}
	}
}

// TestNotFinite: words that are no JSON harm only where a number is read.
func TestNotFinite(t *testing.T) {
	for text, want := range map[string]string{
		`[NaN,Infinity,-Infinity,-1]`:    `["NaN","Infinity","-Infinity",-1]`,
		`{"NaN":"Infinity \" NaN"}`:      `{"NaN":"Infinity \" NaN"}`,
		`{"a":NaN}`:                      `{"a":"NaN"}`,
		`NaN`:                            `"NaN"`,
		`[Nan, -Inf, Inf]`:               `[Nan, -Inf, Inf]`,
		`"\\" NaN`:                       `"\\" "NaN"`,
		strings.Repeat("NaN ", 1_000_00): strings.Repeat(`"NaN" `, 1_000_00),
	} {
		if got := string(pythonJSON([]byte(text))); got != want {
			t.Errorf("%.40s becomes %.40s, want %.40s", text, got, want)
		}
	}
	if _, err := FromConfig("config.json", small(t, "llama", fields{"rope_theta": "NaN"})); err != nil {
		t.Error(err)
	}
}

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

// TestUnknownFields: what a config says and the rules do not know is refused
// by name, or known to be harmless.
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

		"unknown":               {novel, `model_type: "novel" is not known, and its fields alone`},
		"unknown with fields":   {having(having(novel, "num_experts", 8), "clip_qkv", 6), `a llama has no num_experts 8, clip_qkv 6`},
		"no type":               {having(llama, "model_type", nil), "there is no model_type"},
		"another's class":       {named, ""},
		"another's, not tied":   {lacking(named, "tie_word_embeddings"), "tie_word_embeddings: it is absent, and its default for model_type \"novel\""},
		"another's, no KV":      {lacking(named, "num_key_value_heads"), "num_key_value_heads: it is absent"},
		"another's, a field":    {having(named, "some_note", 7), "some_note: 7: "},
		"another's, own code":   {having(named, "auto_map", code("NovelForCausalLM")), `model_type: "novel" is not known`},
		"against its own type":  {having(llama, "architectures", []string{"Qwen2ForCausalLM"}), `"Qwen2ForCausalLM" is not a class of llama`},
		"Kimi-K2":               {kimi, ""},
		"Kimi-K2, other layers": {having(kimi, "moe_layer_freq", 2), "moe_layer_freq: 2: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromConfig("config.json", asJSON(t, c.config))
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
	own, err := FromConfig("config.json", asJSON(t, having(kimi, "model_type", "deepseek_v3")))
	if err != nil {
		t.Fatal(err)
	}
	g, err := FromConfig("config.json", asJSON(t, kimi))
	if err != nil {
		t.Fatal(err)
	}
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
