package hf

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestJoinedUnits: units of a config whose results a forward joins without moving share a device.
func TestJoinedUnits(t *testing.T) {
	internvl := fixtures.Must(os.ReadFile("testdata/internvl2_5-26b.json"))(t)
	graph := fixtures.Must(FromConfig("config.json", internvl))(t)
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
	for config, want := range map[string]int{
		`{"model_type": "albert", "num_hidden_layers": 2}`:                            3, // words, positions, types
		`{"model_type": "electra", "num_hidden_layers": 2}`:                           3,
		`{"model_type": "longformer", "num_hidden_layers": 2, "attention_window": 8}`: 3,
	} {
		graph, err := FromConfig("config.json", []byte(config))
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		if !slices.ContainsFunc(graph.Joined, func(names []string) bool {
			return len(names) == want && slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "embeddings.word_embeddings") })
		}) {
			t.Errorf("%s: joined %q", config, graph.Joined)
		}
	}
	for config, want := range map[string]string{
		`{"model_type": "gpt_neo", "num_layers": 2, "attention_types": [[["global"], 2]]}`:                                                           "transformer.wpe", // with wte
		`{"model_type": "clap", "architectures": ["ClapModel"]}`:                                                                                     "logit_scale_a",
		`{"model_type": "sam", "vision_config": {"num_hidden_layers": 1}}`:                                                                           "vision_encoder.pos_embed",
		`{"model_type": "wav2vec2", "num_hidden_layers": 1}`:                                                                                         "wav2vec2.feature_projection.projection", // with the convolution after it
		`{"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForSequenceClassification"], "use_weighted_layer_sum": true, "num_hidden_layers": 1}`: "layer_weights",
	} {
		graph, err := FromConfig("config.json", []byte(config))
		if err != nil || !slices.ContainsFunc(graph.Joined, func(names []string) bool { return len(names) > 1 && slices.Contains(names, want) }) {
			t.Errorf("%s: %v, joined %q", config, err, graph.Joined)
		}
	}
	blip, err := FromConfig("config.json", []byte(`{"model_type": "blip", "architectures": ["BlipModel"]}`))
	if err != nil || !slices.ContainsFunc(blip.Units, func(unit modelgraph.Unit) bool { return unit.Name == "text_model.encoder.layer.0" }) {
		t.Errorf("a layer of BLIP's text model is split: %v", err)
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
