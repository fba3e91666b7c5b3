package tables_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestNumberedNames: a star after a word is every number of a loop, also one that no build had.
func TestNumberedNames(t *testing.T) {
	tree := treeWith(t, `{"model_type": "nllb-moe", "num_experts": 131, "encoder_layers": 4, "decoder_layers": 1}`)
	names := tensorNames(tree)
	last, beyond := "model.encoder.layers.3.ffn.experts.expert_130.fc1.weight", "model.encoder.layers.3.ffn.experts.expert_131.fc1.weight"
	if !slices.Contains(names, last) || slices.Contains(names, beyond) {
		t.Errorf("want experts up to 130 of 131, have %d names", len(names))
	}
	if at, next := slices.Index(names, "model.encoder.layers.3.ffn.experts.expert_9.fc1.weight"), slices.Index(names, "model.encoder.layers.3.ffn.experts.expert_10.fc1.weight"); at < 0 || next < at {
		t.Errorf("expert 10 is at %d, before expert 9 at %d", next, at)
	}
	if _, err := readTypes(tables.Newest, []byte(`{"model_type": "nllb-moe", "num_experts": 20000}`)); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("want a refusal of 20000 experts, have %v", err)
	}
}

// TestMarkedNames: the layers of one list may have their modules in different orders.
func TestMarkedNames(t *testing.T) {
	names := tensorNames(treeWith(t, `{"model_type": "mllama", "text_config": {"model_type": "mllama_text_model", "num_hidden_layers": 4, "cross_attention_layers": [1]}}`))
	for _, layer := range []struct{ norm, mlp string }{{"layers.1.input_layernorm.weight", "layers.1.mlp.up_proj.weight"}, {"layers.2.mlp.up_proj.weight", "layers.2.input_layernorm.weight"}} {
		has := func(part string) func(string) bool {
			return func(name string) bool { return strings.HasSuffix(name, part) && !strings.Contains(name, "vision") }
		}
		first, second := slices.IndexFunc(names, has(layer.norm)), slices.IndexFunc(names, has(layer.mlp))
		if first < 0 || second < first {
			t.Errorf("%s is at %d, %s at %d", layer.norm, first, layer.mlp, second)
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "@") }) {
		t.Error("a name has its mark")
	}
}

// TestListsForNumbers: a list instead of a number is read if the class asks for one.
func TestListsForNumbers(t *testing.T) {
	for config, read := range map[string]bool{
		`{"model_type": "pvt_v2", "image_size": [112, 112]}`:                                                                true,
		`{"model_type": "gemma3n_text", "num_hidden_layers": 2, "num_kv_shared_layers": 1, "intermediate_size": [64, 128]}`: true,
		`{"model_type": "pvt_v2", "num_channels": [3, 3]}`:                                                                  false,
	} {
		if _, err := readTypes(tables.Newest, []byte(config)); (err == nil) != read {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestGivenFields: a config sets fields of one inside it, which the file may change, and whole
// configs in that one.
func TestGivenFields(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type": "xcodec"}`: "acoustic_encoder.conv2.bias 256",
		`{"model_type": "xcodec", "acoustic_model_config": {"model_type": "dac", "hidden_size": 128}}`:                                       "acoustic_encoder.conv2.bias 128",
		`{"model_type": "mm-grounding-dino", "architectures": ["MMGroundingDinoModel"], "two_stage": false, "embedding_init_target": false}`: "query_position_embeddings.weight 900,256",
		`{"model_type": "pi0"}`: "model.vlm.vision_tower.encoder.layers.26.mlp.fc1.bias 4304",
	} {
		if facts := typeFacts(treeWith(t, config)); !slices.Contains(facts["tensors"], want) {
			t.Errorf("%s has no %s", config, want)
		}
	}
}

// TestTimmNote: a model with a buffer that only the newest timm keeps has a note.
func TestTimmNote(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type": "pe_video"}`:         `"video_encoder.embedder.vision_model.timm_model.rope.bands" (1 such, 16 numbers)`,
		`{"model_type": "conditional_detr"}`: "",
	} {
		note := tables.TimmNote(treeWith(t, config))
		if !strings.HasSuffix(note, want) || (note == "") != (want == "") {
			t.Errorf("%s: %q", config, note)
		}
	}
}

func treeWith(t *testing.T, config string) *tables.Tree {
	t.Helper()
	tree, err := readTypes(tables.Newest, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func tensorNames(tree *tables.Tree) (names []string) {
	for _, line := range typeFacts(tree)["tensors"] {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}
