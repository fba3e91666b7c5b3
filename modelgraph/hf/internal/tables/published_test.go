package tables_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestPublished: configs of models published in 2025 and 2026, and configs that Transformers 5.24
// saves, are exact or refused (fixtures/oracle/README.md). It reads every fourth, with
// PUBLISHED=all all.
func TestPublished(t *testing.T) {
	type published struct {
		Name string `json:"name"`
		typeSample
	}
	exact, refused := 0, 0
	for i, model := range fixtures.Must(fixtures.Rows[published]("../../../../fixtures/oracle/published.jsonl.gz"))(t) {
		if (i+1)%4 != 0 && os.Getenv("PUBLISHED") != "all" {
			continue
		}
		graph, err := hf.FromConfig("config.json", model.Config)
		if err != nil {
			refused++
			t.Logf("refused %s: %v", model.Name, err)
			var syn *modelgraph.SyntaxError
			if placed := errors.As(err, &syn) && syn.Place != ""; !placed && !strings.HasSuffix(err.Error(), spell.WayOut) {
				t.Errorf("%s: %v", model.Name, err)
			}
			continue
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(model.Config, &members); err != nil {
			t.Fatal(err)
		}
		if _, quantised := members["quantization_config"]; quantised { // Transformers built it plain
			delete(members, "quantization_config")
			plain := fixtures.Must(json.Marshal(members))(t)
			if graph, err = hf.FromConfig("config.json", plain); err != nil {
				t.Errorf("%s: %v", model.Name, err)
				continue
			}
		}
		exact++
		if model.Params != 0 && graph.ParamCount() != model.Params {
			t.Errorf("%s: %d parameters, Transformers builds %d", model.Name, graph.ParamCount(), model.Params)
		}
		tree, err := readTypes(tables.Newest, model.Config)
		if err != nil || model.Tensors == "" {
			continue // a hand-written reader's
		}
		facts := typeFacts(tree)
		slices.Sort(facts["ties"])
		for name, want := range map[string]string{"tensors": model.Tensors, "buffers": model.Buffers, "ties": model.Ties, "nosplit": model.NoSplit} {
			if linesDigest(facts[name]) != want {
				t.Errorf("%s: other %s than Transformers builds: %.300v", model.Name, name, facts[name])
			}
		}
	}
	t.Logf("published: %d read, %d refused", exact, refused)
	if exact < 3*refused {
		t.Errorf("%d read, %d refused", exact, refused)
	}
}
