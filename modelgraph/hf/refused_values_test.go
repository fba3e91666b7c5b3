package hf

import (
	"strings"
	"testing"
)

// TestValuesNoForwardTakes: Transformers 5.17 fails with the first value of each row, in the build or in the first forward, and
// takes the second. devmap names the field of the first, and reads the second.
func TestValuesNoForwardTakes(t *testing.T) {
	for _, row := range []struct{ model, bad, good, place string }{
		{"llama", `"rope_scaling": {"rope_type": "foo", "factor": 2}`, `"rope_scaling": {"rope_type": "linear", "factor": 2}`, "rope_scaling.rope_type"},
		{"olmo2", `"rope_parameters": {"type": "foo"}`, `"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}`, "rope_parameters.type"},
		{"llama", `"rope_scaling": {"rope_type": "foo", "factor": 2}`, `"rope_scaling": {"rope_type": "foo", "factor": 2}, "auto_map": {"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"}`, "rope_scaling.rope_type"},
		{"t5", `"feed_forward_proj": "gated-foo"`, `"feed_forward_proj": "gated-silu"`, "feed_forward_proj"},
		{"llama", `"sliding_window": []`, `"sliding_window": null`, "sliding_window"},
		{"cwm", `"partial_rotary_factor": 1.5`, `"partial_rotary_factor": 1.0`, "partial_rotary_factor"},
	} {
		read := func(values string) error {
			_, err := FromConfig("config.json", []byte(`{"model_type": "`+row.model+`", `+values+`}`))
			return err
		}
		if err := read(row.bad); err == nil || !strings.Contains(err.Error(), " "+row.place+":") || !strings.Contains(err.Error(), "Transformers 5.") {
			t.Errorf("%s with %s: %v", row.model, row.bad, err)
		}
		if err := read(row.good); err != nil {
			t.Errorf("%s with %s: %v", row.model, row.good, err)
		}
	}
}
