package tables_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// typeSample is a config and Transformers' build of it (fixtures/oracle/tables.py).
type typeSample struct {
	Config  jsontext.Value `json:"config"`
	Params  int64          `json:"params"`
	Tensors string         `json:"tensors"`
	Buffers string         `json:"buffers"`
	Ties    string         `json:"ties"`
	NoSplit string         `json:"nosplit"`
}

// typeFacts are the facts of a graph, as lines.
func typeFacts(tree *tables.Tree) map[string][]string {
	facts := make(map[string][]string)
	shape := func(s []int64) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(s), " ", ","), "[]") }
	for _, t := range tree.Tensors {
		switch owner := tree.Ties[t.Name]; {
		case t.Buffer:
			persists := 0
			if t.Persistent {
				persists = 1
			}
			facts["buffers"] = append(facts["buffers"], fmt.Sprintf("%s %s %d", t.Name, shape(t.Shape), persists))
		case owner != "":
			facts["ties"] = append(facts["ties"], t.Name+" = "+owner)
		default:
			facts["tensors"] = append(facts["tensors"], t.Name+" "+shape(t.Shape))
		}
	}
	facts["nosplit"] = slices.Sorted(maps.Keys(tree.Units))
	return facts
}

func linesDigest(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// causes are the class and the part of its line that refuse a config.
func causes(tree *tables.Tree) []any {
	if tree == nil {
		return nil
	}
	return tree.Cause
}

// otherTable replaces the newest release's table. It returns a function that writes a line for each
// sample: the cause of a refusal, or the outcome.
func otherTable(t *testing.T) (report func(line ...any)) {
	t.Helper()
	path := os.Getenv("DEVMAP_TYPES_TABLE")
	if path == "" {
		return func(...any) {}
	}
	packed := fixtures.Must(os.ReadFile(path))(t)
	own := *tables.TypeTable
	*tables.TypeTable = embedded.New(path, packed)
	out := fixtures.Must(os.Create(path + ".causes"))(t)
	t.Cleanup(func() {
		*tables.TypeTable = own
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(line ...any) {
		if err := json.MarshalWrite(out, line); err != nil {
			t.Error(err)
		}
		if _, err := fmt.Fprintln(out); err != nil {
			t.Error(err)
		}
	}
}

// TestTypes compares the table with Transformers' builds. DEVMAP_TYPES names other samples, one a
// line, DEVMAP_TYPES_OF their release, DEVMAP_TYPES_TABLE another table.
func TestTypes(t *testing.T) {
	report := otherTable(t)
	path := os.Getenv("DEVMAP_TYPES")
	if path == "" {
		path = "../../../../fixtures/oracle/types.jsonl.gz"
	}
	in := tables.Newest
	for _, r := range tables.Releases {
		if strings.HasPrefix(os.Getenv("DEVMAP_TYPES_OF"), r.Name) {
			in = r
		}
	}
	exact, refused, wrong := 0, 0, 0
	configs := make(map[string][2]int) // by type: exact ones, all
	read := make(map[string]bool)      // classes with an exact one
	for at, sample := range fixtures.Must(fixtures.Rows[typeSample](path))(t) {
		tree, err := readTypes(in, sample.Config)
		var named struct {
			Type    string   `json:"model_type"`
			Classes []string `json:"architectures"`
		}
		_ = json.Unmarshal(sample.Config, &named)
		of := configs[named.Type]
		configs[named.Type] = [2]int{of[0], of[1] + 1}
		switch {
		case errors.As(err, new(*tables.Error)):
			if os.Getenv("DEVMAP_TYPES") != "" && sample.readAs(t) {
				exact++
				report(at, "exact")
				configs[named.Type] = [2]int{of[0] + 1, of[1] + 1}
				continue
			}
			refused++
			report(at, "refused", append([]any{err.Error()}, causes(tree)...))
			if os.Getenv("DEVMAP_TYPES") != "" {
				t.Logf("refused %.150s: %v", sample.Config, err)
			}
			continue
		case err != nil:
			t.Errorf("%.150s: %v", sample.Config, err)
			continue
		}
		facts := typeFacts(tree)
		same, answer := true, make([]string, 0, 4)
		for _, fact := range [][2]string{{"tensors", sample.Tensors}, {"buffers", sample.Buffers}, {"ties", sample.Ties}, {"nosplit", sample.NoSplit}} {
			name, want := fact[0], fact[1]
			got := facts[name]
			if name == "nosplit" || name == "ties" {
				slices.Sort(got)
			}
			answer = append(answer, linesDigest(got))
			if answer[len(answer)-1] != want {
				same = false
				t.Errorf("wrong %s: %.200s: %d lines, first %v", name, sample.Config, len(got), got[:min(3, len(got))])
			}
		}
		if !same {
			wrong++
			report(at, "wrong", answer)
			continue
		}
		exact++
		read[strings.Join(named.Classes, " ")] = true
		report(at, "exact")
		configs[named.Type] = [2]int{of[0] + 1, of[1] + 1}
	}
	t.Logf("%d exact, %d refused, %d wrong; %d classes", exact, refused, wrong, len(read))
	maps.DeleteFunc(configs, func(_ string, of [2]int) bool { return of[0] < of[1] || of[1] < 11 })
	t.Logf("%d types are exact in each of at least eleven configs", len(configs))
	if os.Getenv("DEVMAP_TYPES") == "" && (exact < 5*refused || len(read) < 1660) {
		t.Errorf("%d exact, %d refused: the table has lost some", exact, refused)
	}
}

// TestTypesRefused has configs that no build explains: the error names the field.
func TestTypesRefused(t *testing.T) {
	for config, field := range map[string]string{
		`{"model_type":"gemma4","text_config":{"num_hidden_layers":1000000000}}`:                               "text_config.num_hidden_layers",
		`{"model_type":"mpnet","num_hidden_layers":"x"}`:                                                       "num_hidden_layers",
		`{"model_type":"mpnet","num_hidden_layers":900000}`:                                                    "num_hidden_layers",
		`{"model_type":"dinov3_vit","hidden_size":[1,[2,{}]]}`:                                                 "hidden_size",
		`{"model_type":"segformer","depths":[1e9,1e9,1e9,1e9]}`:                                                "depths",
		`{"model_type":"gemma4","text_config":7}`:                                                              "text_config",
		`{"model_type":"gemma4","text_config":{"model_type":"nosuch"}}`:                                        "text_config.model_type",
		`{"model_type":"qwen3_5","architectures":["Qwen3_5ForCausalLM"],"text_config":{"model_type":"llama"}}`: "text_config.model_type",
		`{"model_type":"mpnet","architectures":["MPNetForever"]}`:                                              "architectures[0]",
		`{"model_type":"mpnet","per_layer_config":{"0":{"hidden_size":4}}}`:                                    "per_layer_config",
		`{"model_type":"gemma4","text_config":{"layer_types":["sliding_attention","odd"]}}`:                    "text_config.layer_types",
		`{"model_type":"gemma4_text","num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"],"attention_k_eq_v":true,"num_global_key_value_heads":2,"per_layer_config":{"1":{"head_dim":512}}}`: "per_layer_config",
		// Arguments of timm make other models.
		`{"model_type":"timm_wrapper","num_classes":2,"model_args":{"in_chans":1}}`:    "model_args",
		`{"model_type":"segformer","depths":"xyz"}`:                                    "depths",
		`{"model_type":"segformer","depths":3}`:                                        "depths",
		`{"model_type":"mpnet","num_hidden_layers":{"a":1}}`:                           "num_hidden_layers",
		`{"model_type":"data2vec-audio","add_adapter":true,"output_hidden_size":1536}`: "output_hidden_size",
		// No Auto class makes the class, and the builds had the default type.
		`{"model_type":"aria","text_config":{"model_type":"llama"}}`: "text_config.model_type",
		// A VoxtralConfig gives its text's config fields.
		`{"model_type":"voxtral","text_config":{"model_type":"qwen2"}}`: "text_config.model_type",
		// Builds of these flags were wrong (without.json).
		`{"model_type":"xlm","use_lang_emb":false,"n_langs":3}`:                   "use_lang_emb",
		`{"model_type":"sew-d","relative_attention":false,"share_att_key":false}`: "relative_attention",
		// A DoryConfig has half as many layers if its kinds have "mlp", so that these are enough.
		`{"model_type":"dory","num_hidden_layers":7,"n_input_layers":2,"n_output_layers":2,"layer_types":["sliding_attention","mlp","sliding_attention","mlp","full_attention"]}`: "layer_types",
	} {
		_, err := readTypes(tables.Newest, []byte(config))
		var refused *tables.Error
		if !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s: %v, want an error of %s", config, err, field)
		}
	}
}

// TestTypesNote: a graph has one note of the table, with or without no-split modules in its class,
// and the class that loads it.
func TestTypesNote(t *testing.T) {
	for config, want := range map[string][3]string{
		`{"model_type":"dinov3_vit","dtype":"bfloat16"}`:                                                  {"units that are not split are exact; activations are not counted", "DINOv3ViTModel", "DINOv3ViTModel"},
		`{"model_type":"mpnet","architectures":["MPNetForMaskedLM"],"dtype":"bfloat16"}`:                  {"(Transformers names none here); what its layers compute is experimental", "MPNetForMaskedLM", "MPNetForMaskedLM"},
		`{"model_type":"deepseek_v4","architectures":["DeepseekV4ForCausalLM"],"dtype":"bfloat16"}`:       {"units that are not split are exact; activations are not counted", "DeepseekV4ForCausalLM", ""},
		`{"model_type":"deepseek_v4","dtype":"bfloat16","transformers_version":"6.1.0","pad_token_id":0}`: {"a newer release may build other tensors", "DeepseekV4ForCausalLM", ""},
	} {
		graph, err := hf.FromConfig("config.json", []byte(config))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		notes := strings.Join(graph.Warnings, "\n")
		if strings.Count(notes, "is read from the table of Transformers 5.24: ") != 1 || !strings.Contains(notes, want[0]) || graph.Class != want[1] || graph.AutoClass != want[2] {
			t.Errorf("%s: %q of %q, notes %q", config, graph.Class, graph.AutoClass, notes)
		}
	}
}

// TestTypesQuantised: a quantised config counts as stored if the tables know the linear layers;
// else it is refused.
func TestTypesQuantised(t *testing.T) {
	for _, config := range []string{
		`{"model_type":"dinov3_vit","quantization_config":{"quant_method":"gptq","bits":4,"group_size":128}}`,
		`{"_class_name":"ZImageTransformer2DModel","quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true}}`,
	} {
		_, err := hf.FromConfig("config.json", []byte(config))
		var refused *tables.Error
		if !errors.As(err, &refused) || refused.Field != "quantization_config" {
			t.Errorf("%s: %v, want an error of quantization_config", config, err)
		}
	}
	graph, err := hf.FromConfig("config.json", []byte(`{"model_type":"solar_open","num_hidden_layers":2,"quantization_config":{"load_in_4bit":true,"bnb_4bit_quant_type":"nf4","quant_method":"bitsandbytes"}}`))
	if err != nil || graph.Quantized != "bitsandbytes" {
		t.Fatalf("%v, %v", graph, err)
	}
	stored := make(map[string]string)
	for i := range graph.Layers {
		for _, tensor := range graph.Layers[i].Params {
			stored[graph.Layers[i].Name+"."+tensor.Name] = tensor.DType.String()
		}
	}
	for name, want := range map[string]string{
		"model.layers.1.self_attn.q_proj.weight": "U8", "model.layers.1.mlp.shared_experts.up_proj.weight": "U8", "model.embed_tokens.weight": "F32", "lm_head.weight": "F32",
		"model.layers.1.input_layernorm.weight": "F32", "model.layers.1.mlp.gate.weight": "F32", "model.layers.1.mlp.experts.gate_up_proj": "F32",
	} {
		if stored[name] != want {
			t.Errorf("%s is %q, want %q", name, stored[name], want)
		}
	}
}

// TestTypesOutside: without no-split classes, a module outside the outermost lists is a unit.
// Modules before a list are on one device, and a model's own parameter with its operands.
func TestTypesOutside(t *testing.T) {
	for config, want := range map[string]struct{ unit, joined string }{
		`{"model_type":"roformer","architectures":["RoFormerForMaskedLM"]}`: {"roformer.embeddings", ""},
		`{"model_type":"funnel"}`:     {"funnel.embeddings", ""},
		`{"model_type":"blenderbot"}`: {"", "model.decoder.embed_tokens model.decoder.embed_positions"},
		`{"model_type":"mlcd"}`:       {"", "class_pos_emb pre_layrnorm vision_rotary_embedding"},
		`{"model_type":"sam2"}`:       {"", "no_memory_embedding vision_encoder.neck.convs.0 vision_encoder.neck.convs.3 prompt_encoder.no_mask_embed mask_decoder.iou_token"},
	} {
		graph, err := hf.FromConfig("config.json", []byte(config))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		whole := slices.ContainsFunc(graph.Units, func(unit modelgraph.Unit) bool { return unit.Name == want.unit })
		joined := slices.ContainsFunc(graph.Joined, func(group []string) bool {
			return !slices.ContainsFunc(strings.Fields(want.joined), func(name string) bool { return !slices.Contains(group, name) })
		})
		if want.unit != "" && !whole || want.joined != "" && !joined {
			t.Errorf("%s: units %v, joined %q", config, graph.Units, graph.Joined)
		}
	}
}
