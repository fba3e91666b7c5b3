package hf

import (
	"maps"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

var infer = learned.Asked{Step: "infer", Batch: 2, Seq: 512}

// TestTapes: a type has the tape of a prefill if its config is like the built ones; one layer's
// sizes are PyTorch's.
func TestTapes(t *testing.T) {
	base := fields{
		"model_type": "nanochat", "architectures": []string{"NanoChatForCausalLM"}, "dtype": "bfloat16", "hidden_size": 1024, "intermediate_size": 3072,
		"num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 4, "vocab_size": 4096,
	}
	head := func(more fields) *modelgraph.Layer {
		config := maps.Clone(base)
		maps.Copy(config, more)
		graph, err := tableGraph(asJSON(t, config))
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Name == "lm_head" })
		return &graph.Layers[at]
	}
	tape := head(nil).Learned.Step(infer)
	if tape == nil {
		t.Fatal("no tape")
	}
	if returned := tape.Returned; len(returned) != 1 || returned[0].Count != 1 || returned[0].Size != [6]int64{2: 2 * 4096} {
		t.Errorf("the logits are %v", returned)
	}
	for name, more := range map[string]fields{
		"another activation":    {"hidden_act": "silu"},
		"heads that share keys": {"num_key_value_heads": 4},
		"a single layer":        {"num_hidden_layers": 1},
		"heads of 12":           {"hidden_size": 768, "num_attention_heads": 64, "num_key_value_heads": 64},
		"heads of 320":          {"hidden_size": 1280, "num_attention_heads": 4, "num_key_value_heads": 4},
	} {
		if head(more).Learned.Step(infer) != nil {
			t.Errorf("%s: no build had it", name)
		}
	}
}

// TestTapesOfPlaces: layers that share a part name the layer before each.
func TestTapesOfPlaces(t *testing.T) {
	graph, err := tableGraph(asJSON(t, fields{"model_type": "nanochat", "architectures": []string{"NanoChatForCausalLM"}, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 5}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range graph.Layers {
		number := numbersIn(graph.Layers[i].Name)
		if tape := graph.Layers[i].Learned.Step(learned.Asked{Step: "train drops", Batch: 2, Seq: 512}); tape != nil && len(number) > 0 && number[0] >= 2 {
			for _, moment := range tape.Backward {
				for other := range moment.Past {
					if at := numbersIn(other); len(at) > 0 && at[0] > 0 {
						seen++
						if at[0] != number[0]-1 {
							t.Errorf("%s names %s", graph.Layers[i].Name, other)
						}
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no layer names another")
	}
}

// TestTapesOfWindows: a tape holds for lengths on the side of a window that the builds had. If
// they had no window, it holds for no config that has one.
func TestTapesOfWindows(t *testing.T) {
	for class, of := range map[string]struct {
		config fields
		least  int64
	}{
		"MiniMaxM3VLForCausalLM": {fields{"model_type": "minimax_m3_vl_text"}, 128},
		"Starcoder2ForCausalLM":  {fields{"model_type": "starcoder2", "sliding_window": 777}, -1},
	} {
		of.config["architectures"], of.config["dtype"] = []string{class}, "bfloat16"
		graph, err := tableGraph(asJSON(t, of.config))
		if err != nil {
			t.Fatal(err)
		}
		least := int64(-1)
		for length := int64(1024); length > 0; length-- {
			if slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
				return layer.Learned.Step(learned.Asked{Step: "infer", Batch: 1, Seq: length}) != nil
			}) {
				least = length
			}
		}
		if least != of.least {
			t.Errorf("%s: a tape from %d tokens on, want %d", class, least, of.least)
		}
	}
}

// TestTapesOfModes: training has other tapes, without the logits if the caller drops them. A model
// inside has its own fields. A release with another step has no tape.
func TestTapesOfModes(t *testing.T) {
	nanochat := fields{"model_type": "nanochat", "architectures": []string{"NanoChatForCausalLM"}, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4096}
	for _, of := range []struct {
		config  fields
		release string
		head    string
		vocab   int64 // of the results
	}{
		{nanochat, newest.name, "lm_head", 4096},
		{nanochat, "5.17", "lm_head", 4096},
		{fields{"model_type": "voxtral", "architectures": []string{"VoxtralForConditionalGeneration"}}, newest.name, "lm_head", 131072},
		{fields{"model_type": "vaultgemma", "architectures": []string{"VaultGemmaForCausalLM"}, "vocab_size": 4096}, "5.17", "lm_head", 0},
	} {
		of.config["dtype"] = "bfloat16"
		graph, err := FromConfig("config.json", asJSON(t, of.config), of.release)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Name == of.head })
		steps := graph.Layers[at].Learned
		if of.vocab == 0 {
			if steps.Step(infer) != nil {
				t.Errorf("%s %s: a tape of another release's step", of.config["model_type"], of.release)
			}
			continue
		}
		for _, recompute := range []bool{false, true} {
			step := map[bool]string{false: "train", true: "recompute"}[recompute]
			keeps, drops := steps.Step(learned.Asked{Step: step, Batch: 2, Seq: 512}), steps.Step(learned.Asked{Step: step + " drops", Batch: 2, Seq: 512})
			if keeps == nil || drops == nil {
				t.Errorf("%s %s: no tape of training", of.config["model_type"], of.release)
			} else if len(keeps.Returned) != 2 || keeps.Returned[0].Size[2] != 2*of.vocab || len(drops.Returned) != 0 || len(keeps.Backward) == 0 {
				t.Errorf("%s %s: the results are %v and %v", of.config["model_type"], of.release, keeps.Returned, drops.Returned)
			}
		}
	}
}
