package hf

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestPi0 compares the arrays of OpenPI's models with its code (fixtures/oracle/openpi.py): names,
// shapes, types, and which are frozen.
func TestPi0(t *testing.T) {
	file := fixtures.Must(os.Open(cmp.Or(os.Getenv("DEVMAP_OPENPI"), "../../fixtures/oracle/openpi/trees.json.gz")))(t)
	text := fixtures.Must(gzip.NewReader(file))(t)
	var golden struct {
		Models []struct {
			Name   string
			Config map[string]any
			Params []struct {
				Name, DType string
				Shape       []int64
				Trained     bool
			}
		}
	}
	if err := json.NewDecoder(text).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{"pi0": 3_238_048_528, "pi05": 3_353_433_872, "pi0-lora": 3_238_048_528 + 27_869_184 + 22_118_400, "pi05-lora": 3_353_433_872 + 27_869_184 + 22_118_400}
	for _, model := range golden.Models {
		model.Config["model_type"] = "openpi_pi0"
		if model.Config["pi05"] == true {
			model.Config["model_type"] = "openpi_pi05"
		}
		config := fixtures.Must(json.Marshal(model.Config))(t)
		graph := fixtures.Must(FromConfig(ConfigName, config))(t)
		var got, want []string
		for i := range graph.Layers {
			for _, tensor := range graph.Layers[i].Owned() {
				got = append(got, fmt.Sprintln(modelgraph.FullName(graph.Layers[i].Name, tensor.Name), tensor.Shape, tensor.DType, tensor.Frozen))
			}
		}
		for _, array := range model.Params {
			dtype := map[string]string{"float32": "F32", "bfloat16": "BF16"}[array.DType]
			want = append(want, fmt.Sprintln(array.Name, array.Shape, dtype, !array.Trained))
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-OpenPI +here):\n%s", model.Name, diff)
		}
		if count := counts[model.Name]; count != 0 && graph.ParamCount() != count {
			t.Errorf("%s: %d parameters, want %d", model.Name, graph.ParamCount(), count)
		}
		delete(counts, model.Name)
	}
	if len(counts) > 0 {
		t.Errorf("not in the golden file: %v", counts)
	}
}
