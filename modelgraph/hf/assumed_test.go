package hf

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestAssumed: a note names the fields that a config lacks and a default fills: the type (torch's
// default) and the class. With files there is no note.
func TestAssumed(t *testing.T) {
	const bare = `{"model_type":"bert","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":32`
	for _, c := range []struct {
		more  string
		dtype modelgraph.DType
		want  []string
	}{
		{`}`, modelgraph.F32, []string{"names no dtype", "counted as F32", "names no architectures", "taken to be BertForMaskedLM"}},
		{`,"architectures":["BertForSequenceClassification"]}`, modelgraph.F32, []string{"names no dtype"}},
		{`,"torch_dtype":"bfloat16"}`, modelgraph.BF16, []string{"taken to be BertForMaskedLM"}},
		{`,"dtype":"float16","architectures":["BertModel"]}`, modelgraph.F16, nil},
	} {
		graph, err := FromConfig("config.json", []byte(bare+c.more))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(graph.Warnings, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q, want %q", c.more, all, want)
			}
		}
		if got := graph.Layers[0].Params[0].DType; got != c.dtype || c.want == nil && all != "" {
			t.Errorf("%s: %v, want %v; %q", c.more, got, c.dtype, all)
		}
	}
	dir := llamaFolder(t, strings.ReplaceAll(tinyLlama, `"architectures":["LlamaForCausalLM"],`, ""), func(ts []stored) []stored { return ts })
	graph, err := FromCheckpoint(dir)
	if err != nil || slices.ContainsFunc(graph.Warnings, func(word string) bool { return strings.Contains(word, fromConfigAlone) }) {
		t.Errorf("%s: %q (%v)", filepath.Base(dir), graph.Warnings, err)
	}
	for _, name := range []string{"pi0", "gpt2", "llama-3.1-8b"} { // they name all fields, or have one class and own types
		if graph := fixture(t, name); len(graph.Warnings) > 0 {
			t.Errorf("%s: %q", name, graph.Warnings)
		}
	}
}
