package hf

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// FuzzFromConfig: no bytes make the reader panic; an accepted config has units and finite sizes.
func FuzzFromConfig(f *testing.F) {
	f.Add([]byte(tinyLlama))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f.Add([]byte(`{"model_type":"` + name + `"}`))
	}
	for _, name := range []string{"mpnet", "dinov3_vit", "convnext", "glm4v_moe", "deepseek_v4"} { // by the table of types
		f.Add([]byte(`{"model_type":"` + name + `","hidden_size":64,"layer_types":["x"],"depths":[1,-1,1e9]}`))
	}
	f.Add([]byte(`{"model_type":"llama","num_hidden_layers":1000000,"hidden_size":1e3,"x":NaN}`))
	f.Add([]byte(`{"model_type":"internvl","text_config":{"model_type":"internvl"},"vision_config":7}`))
	sizes := `"hidden_size":64,"intermediate_size":160,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":128,"tie_word_embeddings":false`
	for _, l := range llamaTypes {
		f.Add([]byte(`{"model_type":"` + l.model + `",` + sizes + `}`))
	}
	for _, more := range []string{
		`"rope_scaling":{"type":"yarn","factor":null,"beta_fast":1e29,"truncate":0}`, `"rope_parameters":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4}`,
		`"rope_scaling":{"rope_type":"dynamic","factor":1e30},"partial_rotary_factor":0.5`, `"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8}},"rope_local_base_freq":1`,
		`"architectures":["LlamaForCausalLM"]`, `"num_experts":8`, `"auto_map":{"AutoModel":"a.LlamaModel","AutoModelForCausalLM":["b",null]}`,
		`"head_dim":NaN`, `"num_experts":-Infinity`, `"hidden_size":64`, `"layer_types":null`, `"text_config":` + strings.Repeat(`{"text_config":`, 200) + `1` + strings.Repeat(`}`, 200),
	} {
		f.Add([]byte(`{"model_type":"novel",` + sizes + `,` + more + `}`))
		f.Add([]byte(`{"model_type":"qwen3",` + sizes + `,` + more + `}`))
		f.Add([]byte(`{"model_type":"gemma3","text_config":{` + sizes + `,` + more + `}}`))
	}
	for _, c := range randomRows[randomFamily](f, familiesFile) {
		if strings.HasSuffix(c.Case, "/0") || strings.HasSuffix(c.Case, "/1") {
			f.Add([]byte(c.Config))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := FromConfig("config.json", data)
		if err != nil {
			if n := len(err.Error()); n == 0 || n > 4000 {
				t.Errorf("an error of %d bytes", n)
			}
			return
		}
		c, err := parseConfig("config.json", data)
		if err != nil || families[c.name("model_type")] == nil && tables.Newest.ConfigOf(c.name("model_type")) == "" && len(c.strs("architectures")) == 0 {
			t.Errorf("read without a known type or class: %v", err)
		}
		var file bytes.Buffer
		if err := modelgraph.Write(&file, g); err != nil {
			t.Fatalf("it is not written: %v", err)
		}
		if _, err := modelgraph.Read(&file, "model.json"); err != nil {
			t.Errorf("what was written is not read: %v", err)
		}
		for i := range g.Layers {
			if op, ok := g.Layers[i].Op.(modelgraph.Attention); ok {
				if inverse, _, err := op.Frequencies(1 << 20); err == nil && len(inverse) == 0 {
					t.Errorf("no frequencies, and no fault: %+v", op.Rotation)
				}
				break
			}
		}
		if strings.ContainsFunc(strings.Join(g.Unknown, ""), unicode.IsControl) {
			t.Errorf("unknown %q", g.Unknown)
		}
		if len(g.Units) == 0 || g.ParamCount() < 0 || g.ParamBytes() < 0 {
			t.Errorf("%d units, %d parameters, %d bytes", len(g.Units), g.ParamCount(), g.ParamBytes())
		}
	})
}
