package tables_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestTapedLayers: layers.json has the layers of classes with cells, as their graphs have them.
// tapes.py cuts steps at these. UPDATE_GOLDEN=1 writes it.
func TestTapedLayers(t *testing.T) {
	type reader struct {
		Type   string   `json:"type"`
		Layers []string `json:"layers"`
	}
	all := make(map[string]*reader)
	for _, file := range []string{"../../../../fixtures/oracle/peaks.jsonl.gz", "../../../../fixtures/oracle/peaks_sweep.jsonl.gz"} {
		for _, row := range fixtures.Must(fixtures.Rows[struct{ Config json.RawMessage }](file))(t) {
			graph, err := hf.FromConfig("config.json", row.Config, tables.Newest.Name)
			if err != nil || graph.Class == "" {
				continue
			}
			if all[graph.Class] == nil {
				all[graph.Class] = &reader{Type: graph.Family}
			}
			for i := range graph.Layers {
				if name := paths.Starred(graph.Layers[i].Name); !slices.Contains(all[graph.Class].Layers, name) {
					all[graph.Class].Layers = append(all[graph.Class].Layers, name)
				}
			}
		}
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../../../fixtures/oracle/layers.json"
	text = append(text, '\n')
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, text) {
		t.Errorf("%s has other layers (%v): UPDATE_GOLDEN=1 writes it", path, err)
	}
}
