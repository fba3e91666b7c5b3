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
