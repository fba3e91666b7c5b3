package hf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// tableFolder is a folder that Transformers saved (fixtures/oracle/table_folders.py).
type tableFolder struct {
	Class   string         `json:"class"`
	Config  jsontext.Value `json:"config"`
	Stored  [][]any        `json:"stored"`
	Params  int64          `json:"params"`
	Tensors []string       `json:"tensors"`
	Ties    []string       `json:"ties"`
	NoSplit []string       `json:"nosplit"`
}

func tableFolders(t *testing.T) []*tableFolder {
	t.Helper()
	return fixtures.Must(fixtures.Rows[*tableFolder]("../../fixtures/oracle/table_folders.jsonl.gz"))(t)
}

// write writes the folder, without the tensors of some names and with others more.
func (c *tableFolder) write(t *testing.T, more ...stored) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ConfigName), c.Config)
	tensors := slices.Clone(more)
	for _, of := range c.Stored {
		dtype := fixtures.Must(modelgraph.ParseDType(fmt.Sprint(of[1])))(t)
		var shape []int64
		for _, d := range of[2].([]any) { //nolint:errcheck // its own file
			shape = append(shape, int64(d.(float64))) //nolint:errcheck // likewise
		}
		tensors = append(tensors, st(fmt.Sprint(of[0]), dtype, shape...))
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
	return dir
}

// TestTableFolders compares folders of types without a reader with the models that they were saved
// of: parameters, ties, and modules that are not split.
func TestTableFolders(t *testing.T) {
	for _, c := range tableFolders(t) {
		t.Run(c.Class, func(t *testing.T) {
			graph := fixtures.Must(FromCheckpoint(c.write(t)))(t)
			if graph.ParamCount() != c.Params {
				t.Errorf("%d parameters, Transformers has %d", graph.ParamCount(), c.Params)
			}
			units := make(map[string]string)
			for i := range graph.Layers {
				layer := &graph.Layers[i]
				for _, tensor := range slices.Concat(layer.Params, layer.Buffers) {
					units[modelgraph.FullName(layer.Name, tensor.Name)] = layer.Unit
				}
			}
			for _, line := range c.Tensors {
				name, _, _ := strings.Cut(line, " ")
				unit, there := units[name]
				if !there {
					t.Errorf("there is no %q: %q", name, graph.Warnings)
					break
				}
				for _, module := range c.NoSplit {
					if strings.HasPrefix(name, module+".") && unit != module && !strings.HasPrefix(module, unit+".") {
						t.Errorf("%q is in unit %q, and %q is not split", name, unit, module)
						break
					}
				}
			}
			for _, tie := range c.Ties {
				name, owner, _ := strings.Cut(tie, " = ")
				if !slices.ContainsFunc(graph.Ties, func(group []string) bool { return slices.Contains(group, name) && slices.Contains(group, owner) }) {
					t.Errorf("%s, and the ties are %q", tie, graph.Ties)
				}
			}
			for _, word := range graph.Warnings {
				if strings.Contains(word, "not known of") && c.Class != "Gemma4ForConditionalGeneration" { // its embedders of towers
					t.Error(word)
				}
			}
		})
	}
}

// TestUsualClass: without architectures, a type may have a usual class that its reader lacks.
func TestUsualClass(t *testing.T) {
	graph, err := FromConfig("config.json", []byte(`{"model_type":"clip_vision_model"}`))
	if err != nil || graph.Class != "CLIPVisionModel" {
		t.Fatalf("%v, want a CLIPVisionModel", err)
	}
}
