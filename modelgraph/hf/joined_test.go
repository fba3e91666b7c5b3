package hf

import (
	"os"
	"slices"
	"testing"
)

// TestJoinedUnits: units whose results a forward joins without moving share a
// device, read from a config.
func TestJoinedUnits(t *testing.T) {
	internvl, err := os.ReadFile("testdata/internvl2_5-26b.json")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := FromConfig("config.json", internvl)
	if err != nil {
		t.Fatal(err)
	}
	sets := graph.TiedUnits()
	if len(sets) != 1 {
		t.Fatalf("%d sets", len(sets))
	}
	var names []string
	for _, unit := range sets[0] {
		names = append(names, graph.Units[unit].Name)
	}
	if want := []string{"vision_model", "language_model.model.tok_embeddings", "mlp1.0", "mlp1.1", "mlp1.3"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if graph.AutoClass != "AutoModel" {
		t.Errorf("loaded by %q", graph.AutoClass)
	}
	for model, want := range map[string]string{"llama-3.1-8b": "", "deepseek-v3": "", "llama-3_1-nemotron-ultra-253b-v1": "AutoModelForCausalLM"} {
		if got := fixture(t, model).AutoClass; got != want {
			t.Errorf("%s is loaded by %q, want %q", model, got, want)
		}
	}
}
