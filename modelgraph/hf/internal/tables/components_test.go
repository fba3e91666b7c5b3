package tables_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestComponentTypes compares the table with diffusers' builds. DEVMAP_COMPONENT_TYPES names other
// samples, one a line.
func TestComponentTypes(t *testing.T) {
	path := os.Getenv("DEVMAP_COMPONENT_TYPES")
	if path == "" {
		path = "../../../../fixtures/oracle/types-diffusers.jsonl.gz"
		t.Run("published", func(t *testing.T) { compareComponents(t, "../../../../fixtures/oracle/published-diffusers.jsonl.gz") })
	}
	compareComponents(t, path)
}

// compareComponents compares the table with samples.
func compareComponents(t *testing.T, path string) {
	t.Helper()
	exact, refused, wrong := 0, 0, 0
	for _, sample := range fixtures.Must(fixtures.Rows[typeSample](path))(t) {
		tree, err := readComponent(sample.Config)
		switch {
		case errors.As(err, new(*tables.Error)) || errors.As(err, new(*modelgraph.SyntaxError)):
			refused++
			if os.Getenv("DEVMAP_COMPONENT_TYPES") != "" {
				t.Logf("refused %.150s: %v", sample.Config, err)
			}
			continue
		case err != nil:
			t.Errorf("%.150s: %v", sample.Config, err)
			continue
		}
		facts, same := typeFacts(tree), true
		for name, want := range map[string]string{"tensors": sample.Tensors, "buffers": sample.Buffers, "ties": sample.Ties, "nosplit": sample.NoSplit} {
			got := facts[name]
			if name == "nosplit" || name == "ties" {
				slices.Sort(got)
			}
			if linesDigest(got) != want {
				same = false
				t.Errorf("wrong %s: %.400s: %d lines, first %v", name, sample.Config, len(got), got[:min(3, len(got))])
			}
		}
		if same {
			exact++
		} else {
			wrong++
		}
	}
	t.Logf("%d exact, %d refused, %d wrong", exact, refused, wrong)
	if os.Getenv("DEVMAP_COMPONENT_TYPES") == "" && (exact < 3*refused || exact == 0) {
		t.Errorf("%d exact, %d refused: the table has lost some", exact, refused)
	}
}

// TestPolicies reads configs of LeRobot's policies: its code's parameters
// (fixtures/oracle/published.py), and refusals of values that no checkpoint has.
func TestPolicies(t *testing.T) {
	for text, want := range map[string]int64{
		`{"type": "pi0", "input_features": {}, "image_resolution": [224, 224]}`:  3_501_372_176,
		`{"type": "pi0_fast", "input_features": {}}`:                             2_923_335_408,
		`{"type": "pi0", "input_features": {}, "paligemma_variant": "gemma_7b"}`: 0,
	} {
		graph, err := hf.FromConfig("config.json", []byte(text))
		switch {
		case want == 0 && (err == nil || !strings.Contains(err.Error(), "devmap.export")):
			t.Errorf("%s: %v", text, err)
		case want > 0 && err != nil:
			t.Errorf("%s: %v", text, err)
		case want > 0 && (graph.ParamCount() != want || !strings.Contains(strings.Join(graph.Warnings, " "), "as of 2026-11-29")):
			t.Errorf("%s: %d parameters, not %d (%q)", text, graph.ParamCount(), want, graph.Warnings)
		}
	}
}
