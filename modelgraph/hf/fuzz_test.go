package hf

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzFromConfig: no bytes make the reader panic, and what it accepts is a
// graph with units and sizes that can be added up.
func FuzzFromConfig(f *testing.F) {
	f.Add([]byte(tinyLlama))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f.Add([]byte(`{"model_type":"` + name + `"}`))
	}
	f.Add([]byte(`{"model_type":"llama","num_hidden_layers":1000000,"hidden_size":1e3,"x":NaN}`))
	f.Add([]byte(`{"model_type":"internvl","text_config":{"model_type":"internvl"},"vision_config":7}`))
	sizes := `"hidden_size":64,"intermediate_size":160,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":128,"tie_word_embeddings":false`
	for _, l := range llamaTypes {
		f.Add([]byte(`{"model_type":"` + l.model + `",` + sizes + `}`))
	}
	for _, more := range []string{
		`"architectures":["LlamaForCausalLM"]`, `"num_experts":8`, `"auto_map":{"AutoModel":"a.LlamaModel","AutoModelForCausalLM":["b",null]}`,
		`"head_dim":NaN`, `"num_experts":-Infinity`, `"hidden_size":64`, `"layer_types":null`, `"text_config":` + strings.Repeat(`{"text_config":`, 200) + `1` + strings.Repeat(`}`, 200),
	} {
		f.Add([]byte(`{"model_type":"novel",` + sizes + `,` + more + `}`))
		f.Add([]byte(`{"model_type":"gemma3","text_config":{` + sizes + `,` + more + `}}`))
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
		if err != nil || families[c.name("model_type")] == nil && len(c.strs("architectures")) == 0 {
			t.Errorf("read without a known type or class: %v", err)
		}
		if len(g.Units) == 0 || g.ParamCount() < 0 || g.ParamBytes() < 0 {
			t.Errorf("%d units, %d parameters, %d bytes", len(g.Units), g.ParamCount(), g.ParamBytes())
		}
	})
}
