package hf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// libraryFolder is a tiny model that a library quantised: its config.json, and the tensors of its
// safetensors files as "name TYPE[shape]".
type libraryFolder struct {
	Name    string         `json:"name"`
	Config  jsontext.Value `json:"config"`
	Tensors []string       `json:"tensors"`
}

var stateText = regexp.MustCompile(`quant_state\.bitsandbytes__(nf4|fp4) U8\[\d+\]$`)

// TestStoredByLibraries: a config alone gives the tensors and bytes of its library's folder.
func TestStoredByLibraries(t *testing.T) {
	folders := fixtures.Must(fixtures.Rows[libraryFolder]("testdata/quantised.jsonl.gz"))(t)
	for _, method := range []string{"gptq", "awq", "fp8-block", "fp8-tensor", "bnb-int8", "bnb-nf4-double", "mxfp4", "nvfp4", "ct-w4a16", "hqq", "torchao-int8wo", "torchao-float8wo", "eetq", "quanto", "fbgemm"} {
		if !slices.ContainsFunc(folders, func(folder libraryFolder) bool { return strings.Contains(strings.ToLower(folder.Name), method) }) {
			t.Errorf("no folder of %s", method)
		}
	}
	for _, folder := range folders {
		t.Run(folder.Name, func(t *testing.T) {
			graph := fixtures.Must(FromConfig("config.json", folder.Config))(t)
			if graph.Quantized == "" && !strings.Contains(strings.Join(graph.Warnings, " "), "it leaves every layer as it is") {
				t.Fatalf("not read: %q", graph.Warnings)
			}
			got, want := ownedSet(graph), slices.Clone(folder.Tensors)
			want = slices.DeleteFunc(want, func(text string) bool { return strings.Contains(text, "rotary_emb.") })
			for _, list := range [][]string{got, want} {
				for i := range list { // the text's length depends on a weight's mean
					list[i] = stateText.ReplaceAllString(list[i], "quant_state")
				}
				slices.Sort(list)
			}
			if !strings.Contains(strings.Join(want, " "), ".experts.0.") && !slices.Equal(got, want) {
				t.Errorf("only the config:\n%s\nonly the folder:\n%s", only(got, want), only(want, got))
			}
			bytes := folderBytes(t, folder.Tensors)
			if off := graph.ParamBytes() - bytes; off < -60 || off > 60 || off != 0 && !strings.Contains(folder.Name, "double") {
				t.Errorf("%d bytes, in the folder %d", graph.ParamBytes(), bytes)
			}
			read := readFolder(t, folder)
			if read.Quantized != graph.Quantized || read.ParamBytes() != bytes {
				t.Errorf("the folder is read as %q of %d bytes, want %q of %d: %q", read.Quantized, read.ParamBytes(), graph.Quantized, bytes, read.Warnings)
			}
		})
	}
}

// readFolder is the graph of the folder, whose files have zeros.
func readFolder(t *testing.T, folder libraryFolder) *modelgraph.Graph {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	write(t, filepath.Join(dir, ConfigName), folder.Config)
	var tensors []stored
	for _, text := range folder.Tensors {
		tensors = append(tensors, storedText(t, text))
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
	graph := fixtures.Must(FromCheckpoint(dir))(t)
	return graph
}

// ownedSet are the tensors in files: shared ones once.
func ownedSet(graph *modelgraph.Graph) []string {
	var out []string
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			if tensor := &graph.Layers[i].Params[j]; tensor.Owner == "" {
				out = append(out, fmt.Sprintf("%s %v%v", modelgraph.FullName(graph.Layers[i].Name, tensor.Name), tensor.DType, tensor.Shape))
			}
		}
	}
	return out
}

func only(a, b []string) string {
	var out []string
	for _, text := range a {
		if !slices.Contains(b, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out[:min(len(out), 12)], "\n")
}

func folderBytes(t *testing.T, tensors []string) int64 {
	t.Helper()
	var total int64
	for _, text := range tensors {
		if tensor := storedText(t, text); !strings.Contains(tensor.name, "rotary_emb.") {
			total += tensor.bytes()
		}
	}
	return total
}

// storedText is a tensor written as "name TYPE[shape]".
func storedText(t *testing.T, text string) stored {
	t.Helper()
	full, kind, _ := strings.Cut(text, " ")
	name, dims, _ := strings.Cut(strings.TrimSuffix(kind, "]"), "[")
	tensor := stored{name: full, dtype: typeNamed(name)}
	for dim := range strings.FieldsSeq(dims) {
		count := fixtures.Must(strconv.ParseInt(dim, 10, 64))(t)
		tensor.shape = append(tensor.shape, count)
	}
	return tensor
}

// TestStoredLlama: Llama-3.1-8B by the methods that most published folders use.
func TestStoredLlama(t *testing.T) {
	const config = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,"torch_dtype":"bfloat16","quantization_config":%s}`
	for section, want := range map[string]string{
		`{"quant_method":"gptq","bits":4,"group_size":128}`:                                  "5.73",
		`{"quant_method":"awq","bits":4,"group_size":128,"version":"gemm"}`:                  "5.73",
		`{"load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true}`: "5.70",
		`{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4"}`:    "6.03",
		`{"quant_method":"bitsandbytes","load_in_8bit":true}`:                                "9.09",
		`{"quant_method":"fp8","weight_block_size":[128,128]}`:                               "9.08",
		`{"quant_method":"fbgemm_fp8","modules_to_not_convert":["lm_head"]}`:                 "9.09",
		`{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"]}`:              "6.03",
		`{"quant_method":"torchao","quant_type":{"default":{"_type":"Int4WeightOnlyConfig","_version":2,"_data":{"group_size":128,"int4_packing_format":"tile_packed_to_4d"}}}}`: "5.81",
	} {
		graph, err := FromConfig("config.json", fmt.Appendf(nil, config, section))
		if err != nil {
			t.Errorf("%s: %v", section, err)
			continue
		}
		if got := fmt.Sprintf("%.2f", float64(graph.ParamBytes())/1e9); got != want {
			t.Errorf("%s: %s GB, want %s: %q", section, got, want, graph.Warnings)
		}
	}
}

// TestStoredRefused: an error names the field that Transformers refuses and the fix. An unknown
// method counts in the model's type, with a warning that names it.
func TestStoredRefused(t *testing.T) {
	for section, want := range map[string]string{
		`{"bits":4,"group_size":128}`:                                               `quantization_config: it has no quant_method, and Transformers refuses such a config: add the method that wrote the weights, as "quant_method": "gptq" or "awq" (fields: bits, group_size)`,
		`{"load_in_4bit":true,"load_in_8bit":true}`:                                 "quantization_config.load_in_8bit: load_in_4bit and load_in_8bit are both true",
		`{"load_in_4bit":true,"bnb_4bit_quant_type":"nf5"}`:                         `quantization_config.bnb_4bit_quant_type: "nf5" is not one of fp4, nf4`,
		`{"load_in_4bit":true,"bnb_4bit_quant_storage":"int4"}`:                     "quantization_config.bnb_4bit_quant_storage",
		`{"load_in_4bit":"yes"}`:                                                    "quantization_config.load_in_4bit",
		`{"quant_method":"gptq","bits":5}`:                                          "quantization_config.bits: 5 is not one of [2 3 4 8]",
		`{"quant_method":"gptq","bits":4,"groupsize":64}`:                           `quantization_config.groupsize: 64: Transformers does not read this name and takes 128; write it as "group_size"`,
		`{"quant_method":"awq","w_bit":8}`:                                          `quantization_config.w_bit: 8: Transformers does not read this name and takes 4; write it as "bits"`,
		`{"quant_method":"gptq"}`:                                                   "quantization_config.bits: gptq needs the bits",
		`{"quant_method":"awq","group_size":0}`:                                     "quantization_config.group_size",
		`{"quant_method":"awq","version":"marble"}`:                                 `quantization_config.version: "marble" is not one of gemm, gemv, gemv_fast, llm-awq`,
		`{"quant_method":"fp8","weight_block_size":[128]}`:                          "quantization_config.weight_block_size",
		`{"quant_method":"fp8","modules_to_not_convert":"lm_head"}`:                 "quantization_config.modules_to_not_convert",
		`{"quant_method":"eetq","weights":"int4"}`:                                  `quantization_config.weights: "int4" is not one of int8`,
		`{"quant_method":"quanto","weights":"int3"}`:                                "quantization_config.weights",
		`{"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":5}}}`: "quant_config.weight_quant_params.nbits",
		`"gptq"`:                           "quantization_config",
		`{"quant_method":"gtpq","bits":4}`: `quantization_config.quant_method: "gtpq" is no method of Transformers 5.24 (did you mean "gptq"?)`,
		`{"quant_method":"mxfp4","dequantize":"yes"}`: "quantization_config.dequantize",
		`{"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"strategy":"group"}}}}`: "config_groups.group_0.weights.group_size",
	} {
		_, err := FromConfig("config.json", []byte(strings.TrimSuffix(tinyLlama, "}")+`,"quantization_config":`+section+"}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", section, err, want)
		}
	}
	for _, method := range []string{"quark", "nvfp4", "vptq", "newest"} {
		graph, err := FromConfig("config.json", []byte(strings.TrimSuffix(tinyLlama, "}")+`,"quantization_config":{"quant_method":"`+method+`"}}`))
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if graph.Quantized != "" || !strings.Contains(strings.Join(graph.Warnings, " "), "stored as "+method+"; from the config alone they are counted as") {
			t.Errorf("%s: %q", method, graph.Warnings)
		}
	}
}

// TestExpertsStored: Transformers 5 has experts in one tensor, which bitsandbytes does not change;
// before, they were linear layers.
func TestExpertsStored(t *testing.T) {
	const config = `{"model_type":"qwen3_moe","hidden_size":64,"moe_intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":32,
		"num_key_value_heads":1,"vocab_size":64,"num_experts":2,"num_experts_per_tok":1,"transformers_version":%q,"quantization_config":{"load_in_4bit":true}}`
	for version, want := range map[string]string{"5.17.0": "mlp.experts.gate_up_proj BF16[2 128 64]", "4.51.3": "mlp.experts.1.up_proj.weight U8[2048 1]"} {
		graph := fixtures.Must(FromConfig("config.json", fmt.Appendf(nil, config, version)))(t)
		if all := strings.Join(tensorSet(graph), "\n"); !strings.Contains(strings.ReplaceAll(all, "F32", "BF16"), want) {
			t.Errorf("%s: no %s in\n%s", version, want, all)
		}
	}
}

// TestOwnHead: without a switch a mistral3 has a separate head; a switch counts.
func TestOwnHead(t *testing.T) {
	const config = `{"model_type":"mistral3"%s,"text_config":{"model_type":"mistral","hidden_size":32,"intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":16,
		"num_key_value_heads":1,"vocab_size":100%s},"vision_config":{"model_type":"pixtral","hidden_size":16,"intermediate_size":32,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":8,"image_size":28,"patch_size":14}}`
	count := func(top, text string) (int64, string) {
		graph := fixtures.Must(FromConfig("config.json", fmt.Appendf(nil, config, top, text)))(t)
		return graph.ParamCount(), strings.Join(graph.Warnings, " ")
	}
	tied, _ := count(`,"tie_word_embeddings":true`, "")
	if inner, _ := count("", `,"tie_word_embeddings":true`); inner != tied {
		t.Errorf("text_config's switch: %d, tied %d", inner, tied)
	}
	packed := `,"quantization_config":{"quant_method":"fp8","weight_block_size":null}`
	if own, words := count(packed, ""); own <= tied+3200 || !strings.Contains(words, "the head is counted as its own") {
		t.Errorf("with fp8: %d parameters, tied %d: %s", own, tied, words)
	}
	if own, words := count("", ""); own != tied+3200 || !strings.Contains(words, fmt.Sprintf("%d parameters; tied, as the class's default, they are %d", own, tied)) {
		t.Errorf("%d parameters, tied %d: %s", own, tied, words)
	}
	graph := fixtures.Must(FromConfig("config.json", []byte(`{"model_type":"internvl","text_config":{"model_type":"qwen2"}}`)))(t)
	if want := fmt.Sprintf("counted as tied, as the class's default, %d parameters; with a head of its own they are", graph.ParamCount()); !strings.Contains(strings.Join(graph.Warnings, " "), want) {
		t.Errorf("no %q in %q", want, graph.Warnings)
	}
}
