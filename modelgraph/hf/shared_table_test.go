package hf

import (
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestSharedTables: the module that only holds the tokens' table of an encoder–decoder model has the
// operation of a bare parameter, by the readers and by the table. A module that the forward calls keeps its operation.
func TestSharedTables(t *testing.T) {
	for config, names := range map[string][2]string{
		`{"model_type":"t5"}`:   {"shared", "decoder.embed_tokens"},
		`{"model_type":"umt5"}`: {"shared", "encoder.embed_tokens"},
		`{"model_type":"t5","architectures":["T5ForSequenceClassification"]}`: {"transformer.shared", "transformer.encoder.embed_tokens"},
		`{"model_type":"bart"}`: {"model.shared", "model.encoder.embed_tokens"},
		`{"model_type":"bart","architectures":["BartModel"],"transformers_version":"5.17.0"}`:                       {"shared", "decoder.embed_tokens"},
		`{"model_type":"mbart","architectures":["MBartForConditionalGeneration"],"scale_embedding":true}`:           {"model.shared", "model.decoder.embed_tokens"},
		`{"model_type":"marian","architectures":["MarianMTModel"]}`:                                                 {"model.shared", "model.decoder.embed_tokens"},
		`{"model_type":"pegasus","architectures":["PegasusForConditionalGeneration"],"activation_function":"gelu"}`: {"model.shared", "model.decoder.embed_tokens"},
		`{"model_type":"m2m_100"}`:   {"model.shared", "model.encoder.embed_tokens"},
		`{"model_type":"florence2"}`: {"model.language_model.encoder.embed_tokens", "model.language_model.shared"},
	} {
		graph, err := FromConfig("config.json", []byte(config))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		stores, called := false, false
		for i := range graph.Layers {
			_, alone := graph.Layers[i].Op.(modelgraph.Parameter)
			_, looksUp := graph.Layers[i].Op.(modelgraph.Embedding)
			stores = stores || alone && graph.Layers[i].Name == names[0]
			called = called || looksUp && graph.Layers[i].Name == names[1]
		}
		if !stores || !called {
			t.Errorf("%s: %s only holds: %t, %s looks up: %t", config, names[0], stores, names[1], called)
		}
	}
}
