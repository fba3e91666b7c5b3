package hf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// randomCheckpoint is a stored folder and the result of Transformers 5.17
// (fixtures/oracle/checkpoints.py): lists, or their digests.
type randomCheckpoint struct {
	Case, Class                       string
	Config                            json.RawMessage
	Stored                            []string // name, type, shape
	Params, Ties, Missing, Unexpected json.RawMessage
	Buffers                           json.RawMessage // of the state dict
	Other                             bool            // less than half is filled: it is refused
}

const checkpointsFile = "../../fixtures/oracle/checkpoints.jsonl.gz"

// TestCheckpoints compares names, shapes, types, order, ties and missing parameters with
// Transformers' loads of random folders, or the folder is refused. DEVMAP_FOLDERS is another file,
// of more samples (make oracle FOLDERS=1).
func TestCheckpoints(t *testing.T) {
	all, refused := 0, 0
	for _, c := range randomRows[randomCheckpoint](t, cmp.Or(os.Getenv("DEVMAP_FOLDERS"), checkpointsFile)) {
		all++
		t.Run(c.Case, func(t *testing.T) {
			graph, left, err := c.read()
			if c.Other {
				if err == nil {
					t.Error("most parameters are in no file, and the folder is read")
				}
				return
			}
			if err != nil {
				refused++
				t.Logf("refused: %v", err)
				return
			}
			c.check(t, graph, left)
		})
	}
	if 25*refused > all {
		t.Errorf("%d of %d folders are refused", refused, all)
	}
}

// beforeFiles is the graph that a folder's files are joined with.
func beforeFiles(text []byte, release ...string) (*modelgraph.Graph, *config, error) {
	graph, f, cfg, err := unquantised(text, release...)
	if err == nil && f != nil && families[cfg.name("model_type")] != f {
		err = errors.New("read as another type")
	}
	return graph, cfg, err
}

// unquantised is the graph of a config by its reader, which it gives, else by the table.
func unquantised(text []byte, release ...string) (*modelgraph.Graph, *family, *config, error) {
	graph, f, cfg, err := fromConfig("config.json", text, release...)
	if cfg != nil && errors.As(err, new(*unknownFamilyError)) {
		graph, err = byRelease(graph, cfg, err, "m", "config.json")
		return graph, nil, cfg, err
	}
	return graph, f, cfg, err
}

// read joins the config with the files' headers, and counts the tensors left over.
func (c *randomCheckpoint) read() (*modelgraph.Graph, int, error) {
	graph, cfg, err := beforeFiles(c.Config, "5.17")
	if err != nil {
		return nil, 0, err
	}
	checkpoint := &safetensors.Checkpoint{Dir: "folder", Files: []string{"model.safetensors"}}
	for _, line := range c.Stored {
		fields := strings.Fields(line)
		tensor := safetensors.Tensor{Name: fields[0]}
		if tensor.DType, err = modelgraph.ParseDType(fields[1]); err == nil {
			err = json.Unmarshal([]byte(fields[2]), &tensor.Shape)
		}
		if err != nil {
			return nil, 0, err
		}
		tensor.End = tables.Elements(tensor.Shape) * tensor.DType.Bits() / 8
		checkpoint.Tensors = append(checkpoint.Tensors, tensor)
	}
	graph, assigned, err := assign(graph, cfg, checkpoint)
	if err != nil {
		return nil, 0, err
	}
	return graph, assigned.unexpected.count, nil
}

func (c *randomCheckpoint) check(t *testing.T, graph *modelgraph.Graph, left int) {
	t.Helper()
	params, missing, buffers := []string{}, []string{}, []string{}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for j := range layer.Buffers {
			if layer.Buffers[j].Persistent {
				buffers = append(buffers, modelgraph.FullName(layer.Name, layer.Buffers[j].Name))
			}
		}
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if tensor.Owner != "" {
				continue
			}
			name := modelgraph.FullName(layer.Name, tensor.Name)
			shape := strings.ReplaceAll(fmt.Sprint(tensor.Shape), " ", ",")
			params = append(params, fmt.Sprintf("%s %v %s", name, tensor.DType, shape))
			if len(tensor.Parts) == 0 {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(buffers)
	checkList(t, "buffers of the state dict", c.Buffers, buffers, c.Config)
	checkList(t, "parameters", c.Params, params, c.Config)
	checkList(t, "ties", c.Ties, graphTies(graph), c.Config)
	checkList(t, "parameters in no file", c.Missing, slices.Sorted(slices.Values(missing)), c.Config)
	var names []string
	count := 0
	if json.Unmarshal(c.Unexpected, &names) != nil {
		if err := json.Unmarshal(c.Unexpected, &count); err != nil {
			t.Fatal(err)
		}
	}
	if count += len(names); (count > 0) != (left > 0) {
		t.Errorf("%d names are left over, in Transformers %d %q", left, count, names)
	}
}
