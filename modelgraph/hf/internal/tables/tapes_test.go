package tables_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
	"github.com/go-json-experiment/json"
)

var infer = learned.Asked{Step: "infer", Batch: 2, Seq: 512}

type fields = map[string]any

func asJSON(t *testing.T, config fields) []byte {
	t.Helper()
	return fixtures.Must(json.Marshal(config))(t)
}

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
		graph := fixtures.Must(tableGraph(asJSON(t, config)))(t)
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
	graph := fixtures.Must(tableGraph(asJSON(t, fields{"model_type": "nanochat", "architectures": []string{"NanoChatForCausalLM"}, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 5})))(t)
	seen := 0
	for i := range graph.Layers {
		number := tables.NumbersIn(graph.Layers[i].Name)
		if tape := graph.Layers[i].Learned.Step(learned.Asked{Step: "train drops", Batch: 2, Seq: 512}); tape != nil && len(number) > 0 && number[0] >= 2 {
			for _, moment := range tape.Backward {
				for other := range moment.Past {
					if at := tables.NumbersIn(other); len(at) > 0 && at[0] > 0 {
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
	for _, of := range []struct {
		class  string
		config fields
		least  int64
	}{
		{"MiniMaxM3VLForCausalLM", fields{"model_type": "minimax_m3_vl_text"}, 128},
		{"Starcoder2ForCausalLM", fields{"model_type": "starcoder2", "sliding_window": 777}, -1},
		{"Starcoder2ForCausalLM", fields{"model_type": "starcoder2", "sliding_window": nil}, 1},
	} {
		of.config["architectures"], of.config["dtype"] = []string{of.class}, "bfloat16"
		graph := fixtures.Must(tableGraph(asJSON(t, of.config)))(t)
		least := int64(-1)
		for length := int64(1024); length > 0; length-- {
			if slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
				return layer.Learned.Step(learned.Asked{Step: "recompute", Batch: 2, Seq: length, Alone: true}) != nil
			}) {
				least = length
			}
		}
		if least != of.least {
			t.Errorf("%s: a tape from %d tokens on, want %d", of.class, least, of.least)
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
		{nanochat, tables.Newest.Name, "lm_head", 4096},
		{nanochat, "5.17", "lm_head", 4096},
		{fields{"model_type": "voxtral", "architectures": []string{"VoxtralForConditionalGeneration"}}, tables.Newest.Name, "lm_head", 131072},
		{fields{"model_type": "vaultgemma", "architectures": []string{"VaultGemmaForCausalLM"}, "vocab_size": 4096}, "5.17", "lm_head", 0},
	} {
		of.config["dtype"] = "bfloat16"
		graph := fixtures.Must(hf.FromConfig("config.json", asJSON(t, of.config), of.release))(t)
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

// TestTapesOfKinds: a type has tapes of steps in other precisions, of adapters, and of lengths above
// windows. Rules of a reader know more than one GPU, so that its tapes are for one.
func TestTapesOfKinds(t *testing.T) {
	steps := func(config fields, layer string) learned.Steps {
		config["dtype"] = "bfloat16"
		graph := fixtures.Must(hf.FromConfig("config.json", asJSON(t, config), tables.Newest.Name))(t)
		at := slices.IndexFunc(graph.Layers, func(one modelgraph.Layer) bool { return one.Name == layer })
		return graph.Layers[at].Learned
	}
	nanochat := fields{"model_type": "nanochat", "architectures": []string{"NanoChatForCausalLM"}, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4096}
	head := steps(nanochat, "lm_head")
	for kind, logit := range map[string]int64{"": 2, "fp32": 4, "autocast": 2, "lora": 2} {
		tape := head.Step(learned.Asked{Step: "train", Kind: kind, Rank: 8, Batch: 2, Seq: 512, Alone: true})
		if tape == nil || len(tape.Returned) == 0 || tape.Returned[0].Size[2] != logit*4096 {
			t.Errorf("%q: logits of %d bytes are not in %+v", kind, logit, tape)
		}
	}
	if head.Step(learned.Asked{Step: "train", Eager: true, Batch: 2, Seq: 512, Alone: true}) == nil {
		t.Error("no tape of eager attention")
	}
	if head.Step(learned.Asked{Step: "infer", Kind: "lora", Batch: 2, Seq: 512, Alone: true}) != nil || head.Step(learned.Asked{Step: "train", Kind: "fp32", Eager: true, Batch: 2, Seq: 512, Alone: true}) != nil {
		t.Error("a tape of a step that was not learned")
	}
	attention, saved := steps(nanochat, "model.layers.1.self_attn"), make(map[int64]int64) // by rank: four linear layers keep bf16 results of A
	for _, rank := range []int64{8, 24} {
		for _, one := range attention.Step(learned.Asked{Step: "train", Kind: "lora", Rank: rank, Batch: 2, Seq: 512, Alone: true}).Saved {
			saved[rank] += one.Count * one.Size[2]
		}
	}
	if grown := saved[24] - saved[8]; grown <= 0 || grown%(4*16) != 0 {
		t.Errorf("adapters of a higher rank keep %d bytes a token more", grown)
	}
	window := steps(fields{
		"model_type": "gemma4_unified_text", "architectures": []string{"Gemma4UnifiedForCausalLM"}, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
		"head_dim": 64, "hidden_size": 512, "sliding_window": 1024, "layer_types": []string{"sliding_attention", "sliding_attention", "sliding_attention", "full_attention"},
		"final_logit_softcapping": nil, "use_bidirectional_attention": "vision", "attention_k_eq_v": false, "per_layer_config": fields{"3": fields{"head_dim": 512}},
	}, "lm_head")
	for length, has := range map[int64]bool{1023: true, 1024: true, 4000: true} {
		if tape := window.Step(learned.Asked{Step: "infer", Batch: 2, Seq: length, Alone: true}); (tape != nil) != has {
			t.Errorf("%d tokens: a tape is %v", length, tape)
		}
	}
	if window.Step(learned.Asked{Step: "train", Batch: 2, Seq: 1023, Alone: true}) == nil || window.Step(learned.Asked{Step: "train", Batch: 2, Seq: 1024, Alone: true}) != nil {
		t.Error("training was learned below the window alone")
	}
	reader := steps(fields{"model_type": "qwen2_moe", "architectures": []string{"Qwen2MoeForCausalLM"}, "sliding_window": 0, "num_hidden_layers": 3}, "lm_head")
	if reader.Step(learned.Asked{Step: "train", Batch: 2, Seq: 512, Alone: true}) == nil || reader.Step(learned.Asked{Step: "train", Batch: 2, Seq: 512}) != nil {
		t.Error("tapes of a reader's type are for one GPU")
	}
}

// TestTapesOfTwoLists: the layers of an encoder all run before those of the decoder, each list of its own length.
func TestTapesOfTwoLists(t *testing.T) {
	graph, err := hf.FromConfig("config.json", asJSON(t, fields{
		"model_type": "mbart", "architectures": []string{"MBartForConditionalGeneration"}, "dtype": "bfloat16", "encoder_layers": 3, "decoder_layers": 5,
		"encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
	}), tables.Newest.Name)
	if err != nil {
		t.Fatal(err)
	}
	ranks := make(map[string][]int)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if list, _ := tables.Stem(layer.Name); list != "" {
			tape := layer.Learned.Step(learned.Asked{Step: "train drops", Batch: 2, Seq: 512, Alone: true})
			if tape == nil {
				t.Fatalf("%s has no tape", layer.Name)
			}
			ranks[list] = append(ranks[list], tape.Rank)
		}
	}
	encoder, decoder := ranks["model.encoder.layers"], ranks["model.decoder.layers"]
	if len(encoder) == 0 || len(encoder)%3 != 0 || len(decoder)%5 != 0 || slices.Max(encoder) >= slices.Min(decoder) {
		t.Errorf("the order of layers is %v", ranks)
	}
}

// TestRequests: the requests of a step of any number of layers have a gradient for each parameter, of its size. Each
// death is of a storage that is there, and no other storage is left.
func TestRequests(t *testing.T) {
	for _, layers := range []int{2, 3, 7} {
		graph := fixtures.Must(tableGraph(asJSON(t, fields{
			"model_type": "mpnet", "architectures": []string{"MPNetForMaskedLM"}, "dtype": "bfloat16", "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": layers,
		})))(t)
		const batch, seq = 3, 256
		requests := graph.Layers[0].Learned.Requests(learned.Asked{Step: "train drops", Batch: batch, Seq: seq})
		if requests == nil {
			t.Fatalf("%d layers: no requests", layers)
		}
		factors := [6]int64{1, batch, batch * seq, batch * seq * seq, seq, seq * seq}
		var alive []bool
		var left []byte
		var gradients, params []int64
		for i, event := range requests.Events {
			if event.What == learned.Gone {
				if !alive[event.At] {
					t.Fatalf("%d layers, event %d: storage %d is not there", layers, i, event.At)
				}
				alive[event.At] = false
				continue
			}
			alive, left = append(alive, true), append(left, event.What)
			if event.What == 'g' {
				var bytes int64
				for term, factor := range requests.Sizes[event.At].Size {
					bytes += factor * factors[term]
				}
				gradients = append(gradients, bytes)
			}
		}
		for number, there := range alive {
			if passes := left[number] == learned.Passing || left[number] == learned.Dropped; passes == there {
				t.Errorf("%d layers: storage %d is %q, and there at the end: %t", layers, number, left[number], there)
			}
		}
		for i := range graph.Layers {
			for _, tensor := range graph.Layers[i].Params {
				if tensor.Owner == "" {
					params = append(params, tensor.Bytes)
				}
			}
		}
		slices.Sort(gradients)
		slices.Sort(params)
		if !slices.Equal(gradients, params) {
			t.Errorf("%d layers: gradients of %v bytes, parameters of %v", layers, gradients, params)
		}
	}
}

// TestRequestsOfResults: results that a caller keeps do not die in the step.
func TestRequestsOfResults(t *testing.T) {
	graph := fixtures.Must(tableGraph(asJSON(t, fields{"model_type": "mpnet", "architectures": []string{"MPNetForMaskedLM"}, "num_hidden_layers": 3})))(t)
	deaths := func(step string) (results, died int) {
		for _, event := range graph.Layers[0].Learned.Requests(learned.Asked{Step: step, Batch: 2, Seq: 256}).Events {
			switch event.What {
			case learned.Output:
				results++
			case learned.Gone:
				died++
			}
		}
		return results, died
	}
	results, died := deaths("train")
	none, all := deaths("train drops")
	if results == 0 || none != 0 || died+results != all {
		t.Errorf("%d results are kept and %d storages die; without results %d die, and %d are kept", results, died, all, none)
	}
}

// TestTapesOfPaddedLengths: Longformer pads sequences to whole windows. On the two sides of a window
// it has tapes of different steps.
func TestTapesOfPaddedLengths(t *testing.T) {
	graph := fixtures.Must(hf.FromConfig("config.json", asJSON(t, fields{"model_type": "longformer", "architectures": []string{"LongformerForMaskedLM"}, "attention_window": 256, "num_hidden_layers": 3}), tables.Newest.Name))(t)
	at := slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Name == "longformer.encoder.layer.1.attention" })
	saved := func(seq int64) learned.Storages {
		return graph.Layers[at].Learned.Step(learned.Asked{Step: "train drops", Batch: 2, Seq: seq, Alone: true}).Saved
	}
	short, one, two, padded := saved(200), saved(256), saved(512), saved(300)
	if fmt.Sprint(short) != fmt.Sprint(one) || fmt.Sprint(padded) != fmt.Sprint(two) || fmt.Sprint(one) == fmt.Sprint(two) {
		t.Errorf("lengths of 200, 256, 300 and 512 have %v, %v, %v and %v", short, one, padded, two)
	}
}

// TestTapesOfLastLayers: a field with the number of the last layer, which has experts, follows the layers.
func TestTapesOfLastLayers(t *testing.T) {
	for end, has := range map[int]bool{6: true, 4: false} {
		graph := fixtures.Must(hf.FromConfig("config.json", asJSON(t, fields{
			"model_type": "ernie4_5_moe", "architectures": []string{"Ernie4_5_MoeForCausalLM"}, "dtype": "bfloat16", "num_hidden_layers": 7, "moe_layer_end_index": end,
			"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2, "moe_layer_start_index": 1, "use_bias": false, "moe_k": 6,
		}), tables.Newest.Name))(t)
		if tape := graph.Layers[0].Learned.Step(learned.Asked{Step: "infer", Batch: 2, Seq: 512, Alone: true}); (tape != nil) != has {
			t.Errorf("experts up to layer %d of 7: a tape is %v", end, tape)
		}
	}
}

// TestNoGradient: parameters that no gradient reaches are frozen.
func TestNoGradient(t *testing.T) {
	for _, of := range []struct{ model, class, part string }{
		{"longformer", "LongformerForMaskedLM", "_global"},
		{"longformer", "LongformerForSequenceClassification", ""},
		{"big_bird", "BigBirdForCausalLM", "pooler"},
		{"big_bird", "BigBirdForSequenceClassification", ""},
		{"mra", "MraForMaskedLM", "attention.self."},
		{"layoutlm", "LayoutLMForMaskedLM", "pooler"},
		{"deepseek_v32", "DeepseekV32ForCausalLM", "indexer."},
	} {
		graph := fixtures.Must(hf.FromConfig("config.json", asJSON(t, fields{"model_type": of.model, "architectures": []string{of.class}}), tables.Newest.Name))(t)
		for i := range graph.Layers {
			for _, tensor := range graph.Layers[i].Params {
				name := modelgraph.FullName(graph.Layers[i].Name, tensor.Name)
				if want := of.part != "" && strings.Contains(name, of.part); tensor.Frozen != want {
					t.Errorf("%s: %s is frozen: %v", of.class, name, tensor.Frozen)
				}
			}
		}
	}
}
