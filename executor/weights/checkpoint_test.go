package weights

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// TestCheckpoint: every parameter arrives in its place, from any stored type.
func TestCheckpoint(t *testing.T) {
	for _, name := range []string{"F64", "F32", "BF16", "F16"} {
		dtype, _ := modelgraph.ParseDType(name)
		folder := t.TempDir()
		writeCheckpoint(t, folder, tinyConfig, dtype)
		graph := readGraph(t, folder)
		source := fixtures.Must(Checkpoint(graph))(t)
		for _, to := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
			for i, entry := range Parameters(graph, to) {
				got, err := streamed(source, entry.Name, to)
				if want := rawOf(i, numel(entry.Shape), to); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v to %v, %s: %v, %x; want %x", dtype, to, entry.Name, err, got, want)
				}
			}
		}
		tied, err := streamed(source, "lm_head.weight", modelgraph.F32)
		if err != nil || !bytes.Equal(tied, rawOf(0, 40, modelgraph.F32)) {
			t.Errorf("%v, lm_head.weight, tied: %v, %x", dtype, err, tied)
		}
		if _, err := streamed(source, "model.nothing", modelgraph.F32); err == nil {
			t.Error("a parameter that is not there was found")
		}
		if _, err := streamed(source, "model.norm.weight", modelgraph.F16); err == nil {
			t.Error("weights in F16 were given")
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestParts: several stored tensors follow each other in one parameter, each in
// its own type.
func TestParts(t *testing.T) {
	folder := t.TempDir()
	writeCheckpoint(t, folder, tinyConfig, modelgraph.F32)
	graph := readGraph(t, folder)
	var first, second *modelgraph.Tensor // of 64 elements each
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			switch tensor := &graph.Layers[i].Params[j]; modelgraph.FullName(graph.Layers[i].Name, tensor.Name) {
			case "model.layers.0.self_attn.q_proj.weight":
				first = tensor
			case "model.layers.0.self_attn.k_proj.weight":
				second = tensor
			}
		}
	}
	both := fixtures.Must(modelgraph.NewTensor(first.Name, modelgraph.F32, 16, 8))(t)
	both.Parts = append(append(both.Parts, first.Parts...), second.Parts...)
	*first = both
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), `both "model.layers.0.self_attn.q_proj.weight" and "model.layers.0.self_attn.k_proj.weight" would be read from it`) {
		t.Errorf("two parameters on the same bytes: %v", err)
	}
	parts := second.Parts
	second.Parts = slices.Concat(parts, parts)
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), "both") {
		t.Errorf("the same bytes twice in one: %v", err)
	}
	half := parts[0]
	for i := range graph.Layers { // 8 of them in the place of 64
		if graph.Layers[i].Name == "model.norm" {
			half = graph.Layers[i].Params[0].Parts[0]
			graph.Layers[i].Params = nil
		}
	}
	first.Parts, second.Parts = []modelgraph.Part{first.Parts[0], half}, parts
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), `the tensors of "model.layers.0.self_attn.q_proj.weight" have 72 elements, and its shape [16 8] has 128`) {
		t.Errorf("too few elements: %v", err)
	}
	first.Parts = append(first.Parts[:1], parts...)
	second.Parts = nil
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), `no file holds "model.layers.0.self_attn.k_proj.weight"`) {
		t.Errorf("one without a file: %v", err)
	}
	*second, _ = modelgraph.NewTensor(second.Name, modelgraph.F32, 0)
	second.Parts = nil
	second.Owner = "tied" // so that no one asks for it
	source := fixtures.Must(Checkpoint(graph))(t)
	defer source.Close() //nolint:errcheck // opened for reading
	got, err := streamed(source, "model.layers.0.self_attn.q_proj.weight", modelgraph.BF16)
	if want := append(rawOf(1, 64, modelgraph.BF16), rawOf(2, 64, modelgraph.BF16)...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, %x; want %x", err, got, want)
	}
}

// TestDownloaded reads a sharded model from a download cache, in which files are links to blobs.
func TestDownloaded(t *testing.T) {
	home := t.TempDir()
	snapshot := filepath.Join(home, "models--ORG--NAME", "snapshots", "main")
	blobs := filepath.Join(home, "models--ORG--NAME", "blobs")
	index := `{"metadata":{},"weight_map":{`
	for i, entry := range Parameters(tiny(t, tinyConfig), modelgraph.BF16) {
		name := fmt.Sprintf("part/model-%d.safetensors", i)
		data := rawOf(i, numel(entry.Shape), modelgraph.BF16)
		head := fixtures.Must(safetensors.Encode(nil, []safetensors.Tensor{{Name: entry.Name, DType: modelgraph.BF16, Shape: entry.Shape}}))(t)
		index += fmt.Sprintf("%q:%q,", entry.Name, name)
		writeFile(t, filepath.Join(blobs, strconv.Itoa(i)), append(head, data...))
		writeFile(t, filepath.Join(snapshot, "part", "x"), nil)
		if err := os.Symlink(filepath.Join("..", "..", "..", "blobs", strconv.Itoa(i)), filepath.Join(snapshot, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(snapshot, "config.json"), []byte(tinyConfig))
	writeFile(t, filepath.Join(snapshot, "model.safetensors.index.json"), []byte(strings.TrimSuffix(index, ",")+"}}"))
	source := fixtures.Must(Checkpoint(readGraph(t, snapshot)))(t)
	for i, entry := range Parameters(tiny(t, tinyConfig), modelgraph.F32) {
		if got, err := streamed(source, entry.Name, modelgraph.F32); err != nil || !bytes.Equal(got, rawOf(i, numel(entry.Shape), modelgraph.F32)) {
			t.Errorf("%s: %v, %x", entry.Name, err, got)
		}
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutWeights(t *testing.T) {
	if _, err := Checkpoint(tiny(t, tinyConfig)); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "config.json: the model has no weights") {
		t.Errorf("a config alone: %v", err)
	}
}

// TestCheckpointRefuses: what changed between the reading of a model and the
// reading of its weights is an error before anything is passed on.
func TestCheckpointRefuses(t *testing.T) {
	other := t.TempDir()
	writeCheckpoint(t, other, tinyConfig, modelgraph.F32)
	for want, change := range map[string]func(path string) error{
		"no such file": os.Remove,
		"a directory: want a regular file": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o777))
		},
		"outside": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(other, "model.safetensors"), path))
		},
		`it is BF16 at bytes`: func(path string) error {
			writeCheckpoint(t, filepath.Dir(path), tinyConfig, modelgraph.BF16)
			return nil
		},
		`tensor "model.embed_tokens.weight": it is gone`: func(path string) error {
			return rewrite(path, "model.embed_tokens.weight", "model.embed_tokens.weighs")
		},
		`it is [12 8], and "model.layers.0.mlp.down_proj.weight" is [8 12]`: func(path string) error {
			return rewrite(path, `"model.layers.0.mlp.down_proj.weight":{"dtype":"F32","shape":[8,12]`, `"model.layers.0.mlp.down_proj.weight":{"dtype":"F32","shape":[12,8]`)
		},
		"bytes of data": func(path string) error { return os.Truncate(path, 2000) },
	} {
		folder := t.TempDir()
		writeCheckpoint(t, folder, tinyConfig, modelgraph.F32)
		graph := readGraph(t, folder)
		if err := change(filepath.Join(folder, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		_, err := Checkpoint(graph)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "model.safetensors") {
			t.Fatalf("%s: %v", want, err)
		}
		if lines := strings.Count(err.Error(), "\n"); want != "it is BF16 at bytes" && lines > 0 {
			t.Errorf("%d lines more than one: %v", lines, err)
		}
	}
}

// rewrite replaces text of a file by other of the same length.
func rewrite(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(from)) || len(from) != len(to) {
		return errors.New("no such text: " + from)
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o666)
}

// TestQuantised: stored types that need separate scales are refused, with their name.
func TestQuantised(t *testing.T) {
	folder := t.TempDir()
	writeCheckpoint(t, folder, tinyConfig, modelgraph.F32)
	graph := readGraph(t, folder)
	for i := range graph.Layers {
		if graph.Layers[i].Name == "model.embed_tokens" {
			graph.Layers[i].Params[0].Parts[0].DType, _ = modelgraph.ParseDType("F8_E4M3")
		}
	}
	if _, err := Checkpoint(graph); err == nil || !strings.Contains(err.Error(), `tensor "model.embed_tokens.weight": F8_E4M3 is a quantised type`) {
		t.Error(err)
	}
}
