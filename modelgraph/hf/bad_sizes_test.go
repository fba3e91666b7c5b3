package hf

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// badSizes are values that no size may have.
var badSizes = []string{
	"null", "NaN", `"4096"`, "4096.0", "-1", "0", "Infinity", "-Infinity", "4096.5", "1e3", "true",
	"1099511627777", "9223372036854775808", "[4096]", `{"a": 1}`,
}

// nullable are the sizes that may be null: Transformers' config classes give them None (or, in
// remote code, a default of None).
var nullable = tables.WordSet("head_dim num_key_value_heads sliding_window n_inner word_embed_proj_dim q_lora_rank pooler_output_size attention_chunk_size max_token_len max_window_layers kv_channels rotary_dim shared_intermediate_size projection_size")

// TestBadSizes: in every family and field, a value that is not a size is refused with the field and
// the value. No default replaces it.
func TestBadSizes(t *testing.T) {
	for _, family := range slices.Sorted(maps.Keys(families)) {
		base := fields{"model_type": family}
		if slices.ContainsFunc(llamaTypes, func(l *llamaType) bool { return l.model == family }) {
			base = asFields(t, small(t, family, fields{"tie_word_embeddings": true}))
			if family == "internlm" { // as many as heads
				delete(base, "num_key_value_heads")
			}
		}
		switch family { // which have no defaults
		case "exaone":
			base = asFields(t, small(t, family, fields{"num_layers": 4}))
			delete(base, "num_hidden_layers")
		case "minimax_text_01":
			base = asFields(t, small(t, family, fields{"num_local_experts": 4, "num_experts_per_tok": 2, "attn_type_list": []int{0, 1, 0, 1}, "max_position_embeddings": 64}))
		case "clip_vision_model": // whose usual class is the table's
			base["architectures"] = []string{"CLIPVisionModelWithProjection"}
		case "phi4mm":
			base = publicConfig(t, "phi-4-multimodal-instruct")
		case "chatglm":
			base = fields{"model_type": family, "hidden_size": 64, "ffn_hidden_size": 160, "num_layers": 2, "num_attention_heads": 4, "padded_vocab_size": 256}
		}
		if family == "dots1" { // whose defaults make no model
			base["n_routed_experts"], base["num_experts_per_tok"] = 8, 2
		}
		if family == "nemotron-nas" {
			base = asFields(t, small(t, family, oneBlock(fields{"no_op": true}, fields{"no_op": true})))
		}
		c, err := parseConfig("config.json", asJSON(t, base))
		if err != nil {
			t.Fatal(err)
		}
		if families[family].table {
			c = c.filled(family)
		}
		_, _ = families[family].graph(c, families[family].class)
		sizes := append(slices.Clone(c.shared.assumed), "hidden_size", "vocab_size")
		slices.Sort(sizes)
		for _, place := range slices.Compact(sizes) {
			bads := badSizes
			if !strings.HasSuffix(place, "hidden_size") { // a few, to be quick
				bads = bads[:6]
			}
			for _, bad := range bads {
				_, name, inside := strings.Cut(place, ".")
				if !c.shared.read[place] || bad == "null" && c.class != nil && slices.Contains(c.class.Nullable, place) || bad == "null" && (nullable[place] || inside && nullable[name]) {
					continue
				}
				checkBadSize(t, base, place, bad)
			}
		}
	}
}

// checkBadSize sets one field, inside an object if its name has a point. Zero and lists are valid
// sizes for some fields: then the read must succeed.
func checkBadSize(t *testing.T, base fields, place, bad string) {
	t.Helper()
	value := json.RawMessage(bad)
	if slices.Contains(spell.NonFinite, bad) {
		value = json.RawMessage(`"` + bad + `"`)
	}
	c := having(base, place, value)
	if object, name, inside := strings.Cut(place, "."); inside {
		c = having(base, object, fields{name: value})
	}
	_, err := FromConfig("config.json", []byte(strings.ReplaceAll(string(asJSON(t, c)), asQuoted(bad), bad)))
	if err == nil && (bad == "0" || bad == "[4096]") {
		return
	}
	var refused *tables.Error // a table differs
	if errors.As(err, &refused) && bad == "0" {
		return
	}
	var syn *modelgraph.SyntaxError
	if !errors.As(err, &syn) || bad != "0" && bad != "[4096]" && (syn.Place != place || !strings.Contains(syn.Msg, strings.ReplaceAll(bad, " ", ""))) {
		t.Errorf("%s: %s: %s: %v", base["model_type"], place, bad, err)
	}
}

// asQuoted is a word outside JSON as the test's encoder has to write it.
func asQuoted(bad string) string {
	if slices.Contains(spell.NonFinite, bad) {
		return `"` + bad + `"`
	}
	return bad
}

func asFields(t *testing.T, data []byte) fields {
	t.Helper()
	var c fields
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNotFinite: words outside JSON harm only if a number is read.
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
		if got := string(spell.JSON([]byte(text))); got != want {
			t.Errorf("%.40s becomes %.40s, want %.40s", text, got, want)
		}
	}
	if _, err := FromConfig("config.json", small(t, "llama", fields{"rope_theta": "NaN"})); err != nil {
		t.Error(err)
	}
	if _, err := FromConfig("config.json", []byte("{\"model_type\": \"llama\", \"hidden_size\": [\n1]}")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not on one line", err)
	}
}
