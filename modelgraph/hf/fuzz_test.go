package hf

import (
	"testing"
)

// FuzzFromConfig: no bytes make the reader panic, and what it accepts is a
// graph with units and sizes that can be added up.
func FuzzFromConfig(f *testing.F) {
	f.Add([]byte(tinyLlama))
	for _, name := range Families() {
		f.Add([]byte(`{"model_type":"` + name + `"}`))
	}
	f.Add([]byte(`{"model_type":"llama","num_hidden_layers":1000000,"hidden_size":1e3,"x":NaN}`))
	f.Add([]byte(`{"model_type":"internvl","text_config":{"model_type":"internvl"},"vision_config":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := FromConfig("config.json", data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if len(g.Units) == 0 || g.ParamCount() < 0 || g.ParamBytes() < 0 {
			t.Errorf("%d units, %d parameters, %d bytes", len(g.Units), g.ParamCount(), g.ParamBytes())
		}
	})
}
