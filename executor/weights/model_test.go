package weights

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// save makes a folder of a graph with random weights.
func save(t *testing.T, folder string, graph *modelgraph.Graph, dtype modelgraph.DType) {
	t.Helper()
	file := fixtures.Must(CreateModel(folder, graph, dtype))(t)
	if err := errors.Join(fill(file, Random(graph, 3), Parameters(graph, dtype)), file.Commit()); err != nil {
		t.Fatal(err)
	}
}

// families are the configurations of the models that run. For each of them, Transformers 5.17 loads
// the saved files with no key missing or unexpected, and writes the same bytes of
// model.safetensors.
var families = map[string]string{
	"llama":   `"model_type":"llama","architectures":["LlamaForCausalLM"]`,
	"mistral": `"model_type":"mistral","architectures":["MistralForCausalLM"]`,
	"qwen2":   `"model_type":"qwen2","architectures":["Qwen2ForCausalLM"]`,
	"qwen3":   `"model_type":"qwen3","architectures":["Qwen3ForCausalLM"]`,
	"gemma":   `"model_type":"gemma","architectures":["GemmaForCausalLM"]`,
	"gemma2":  `"model_type":"gemma2","architectures":["Gemma2ForCausalLM"]`,
	"gemma3":  `"model_type":"gemma3_text","architectures":["Gemma3ForCausalLM"]`,
	"phi3":    `"model_type":"phi3","architectures":["Phi3ForCausalLM"],"pad_token_id":0`,
	"gpt2":    `"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_embd":32,"n_layer":2,"n_head":4,"n_positions":64`,
	"bert":    `"model_type":"bert","architectures":["BertModel"]`,
}

const sizes = `,"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":67,"max_position_embeddings":64}`

func configFor(family string) string {
	if family == "gpt2" {
		return "{" + families[family] + `,"vocab_size":67}`
	}
	if family == "bert" {
		return "{" + strings.Replace(families[family]+sizes, `"num_key_value_heads":2,"head_dim":8,`, "", 1)
	}
	return "{" + families[family] + sizes
}

// TestSaved: what is saved of a model of every family is read as that model,
// whole and with no word of warning, and has the values.
func TestSaved(t *testing.T) {
	for family := range families {
		for _, dtype := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
			graph := tiny(t, configFor(family))
			folder := filepath.Join(t.TempDir(), "saved")
			save(t, folder, graph, dtype)
			read := fixtures.Must(hf.FromCheckpoint(folder))(t)
			if len(read.Warnings) > 0 || read.DType != dtype || read.Class != graph.Class || read.ParamCount() != graph.ParamCount() {
				t.Errorf("%s %v: %v %s, %d of %d parameters, %q", family, dtype, read.DType, read.Class, read.ParamCount(), graph.ParamCount(), read.Warnings)
			}
			source := fixtures.Must(Checkpoint(read))(t)
			for _, entry := range Parameters(graph, dtype) {
				got, err := streamed(source, entry.Name, dtype)
				want, wrong := streamed(Random(graph, 3), entry.Name, dtype)
				if err != nil || wrong != nil || !bytes.Equal(got, want) {
					t.Errorf("%s %v: %s: %v, %v", family, dtype, entry.Name, err, wrong)
				}
			}
			if err := source.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSavedConfig: the config is the source's, but for what is no longer so.
func TestSavedConfig(t *testing.T) {
	for from, want := range map[string]string{
		`{"z":1,"torch_dtype":"float16","architectures":["X"],"a":{"dtype":"float16","b":[1.50]},"quantization_config":{"quant_method":"fp8"}}`: `{"z":1,"torch_dtype":"bfloat16","architectures":["X"],"a":{"dtype":"float16","b":[1.50]}}`,
		`{"dtype":null,"architectures":null,"a":"\u00e9"}`: `{"dtype":"bfloat16","a":"é","architectures":["LlamaModel"]}`,
		`{}`: `{"dtype":"bfloat16","architectures":["LlamaModel"]}`,
	} {
		got, err := configOf([]byte(from), "LlamaModel", modelgraph.BF16)
		flat := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(string(got))
		if err != nil || flat != want {
			t.Errorf("%v\n got %s\nwant %s", err, flat, want)
		}
	}
}

func TestGenerationConfig(t *testing.T) {
	from := t.TempDir()
	const text = "{\"eos_token_id\": 2}\n"
	writeCheckpoint(t, from, tinyConfig, modelgraph.F32)
	writeFile(t, filepath.Join(from, generationName), []byte(text))
	folder := filepath.Join(t.TempDir(), "saved")
	save(t, folder, readGraph(t, from), modelgraph.F32)
	got, err := os.ReadFile(filepath.Join(folder, generationName))
	if err != nil || string(got) != text || names(t, folder) != "[config.json generation_config.json model.safetensors]" {
		t.Errorf("%q, %v, %s", got, err, names(t, folder))
	}
	if err := os.Truncate(filepath.Join(from, generationName), maxGeneration+1); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateModel(folder+"2", readGraph(t, from), modelgraph.F32); err == nil || !strings.Contains(err.Error(), "more than the 1048576 bytes") {
		t.Error(err)
	}
}

// TestVacant: a folder to save in is new or empty, and appears whole.
func TestVacant(t *testing.T) {
	graph := tiny(t, tinyConfig)
	home := t.TempDir()
	path := func(name string) string { return filepath.Join(home, name) }
	writeFile(t, path("file"), nil)
	writeFile(t, path("full/x"), nil)
	if err := errors.Join(os.Mkdir(path("empty"), 0o777), os.Symlink("empty", path("link")), os.Symlink("nothing", path("dangling"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "full", "dangling"} {
		if _, err := CreateModel(path(name), graph, modelgraph.F32); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), path(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := CreateModel(path("a/b"), graph, modelgraph.F32); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := CreateModel(path("new"), &modelgraph.Graph{Source: "model.json"}, modelgraph.F32); !errors.Is(err, ErrNoConfig) {
		t.Error(err)
	}
	for _, name := range []string{"new", "empty/", "link"} {
		if name == "link" {
			if err := errors.Join(os.RemoveAll(path("empty")), os.Mkdir(path("empty"), 0o777)); err != nil {
				t.Fatal(err)
			}
		}
		save(t, path(name), graph, modelgraph.F32)
		if got := names(t, path(name)); got != "[config.json model.safetensors]" {
			t.Errorf("%s holds %s", name, got)
		}
	}
	file := fixtures.Must(CreateModel(path("taken"), graph, modelgraph.F32))(t)
	writeFile(t, path("taken/x"), nil) // by somebody else, meanwhile
	if err := errors.Join(fill(file, Random(graph, 3), Parameters(graph, modelgraph.F32)), file.Commit()); err == nil {
		t.Error("a folder that holds something was replaced")
	}
	if got := names(t, home); got != "[dangling empty file full link new taken]" || names(t, path("taken")) != "[x]" {
		t.Errorf("there is %s", got)
	}
}
