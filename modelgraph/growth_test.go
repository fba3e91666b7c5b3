package modelgraph_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGrowth: how declared bytes grow, what they were taken at and what an
// exporter has to say are read, written and read again.
func TestGrowth(t *testing.T) {
	const grown = `"growth": {"activation_bytes": {"token": 4096, "pair": 2}, "workspace_bytes": {"sequence": 7}}, "output_bytes"`
	text := strings.Replace(example, `"output_bytes"`, grown, 1)
	text = strings.Replace(text, `"layers"`, `"taken": {"batch": 2, "seq": 37, "precision": "bf16-true"}, "warnings": ["h.0: seen once"], "layers"`, 1)
	text = strings.Replace(text, `"workspace_bytes": 0, `, "", 1)
	first := fixtures.Must(modelgraph.Read(strings.NewReader(text), "model.json"))(t)
	var written strings.Builder
	if err := modelgraph.Write(&written, first); err != nil {
		t.Fatal(err)
	}
	again := fixtures.Must(modelgraph.Read(strings.NewReader(written.String()), "model.json"))(t)
	for name, g := range map[string]*modelgraph.Graph{"read": first, "read again": again} {
		declared := g.Layers[1].Declared
		growth := declared.Growth
		if growth.ActivationBytes.Token != 4096 || growth.ActivationBytes.Pair != 2 || growth.WorkspaceBytes.Sequence != 7 || declared.WorkspaceBytes != 0 {
			t.Errorf("%s: %+v", name, declared)
		}
		if g.Taken.Batch != 2 || g.Taken.Seq != 37 || g.Taken.Precision != "bf16-true" || len(g.Warnings) != 1 {
			t.Errorf("%s: taken at %+v, warnings %q", name, g.Taken, g.Warnings)
		}
	}
	plain := fixtures.Must(modelgraph.Read(strings.NewReader(example), "model.json"))(t)
	if first.Digest() == plain.Digest() || first.Digest() != again.Digest() {
		t.Error("how bytes grow is not part of what the model is")
	}
	// The model's digest in plans from before growth.
	const before = "sha256:7da42490b07a52947bcfd6f23d9ad50921dd57c5ab526a4148aff801d2abf6da"
	if got := plain.Digest(); got != before {
		t.Errorf("the digest of a model without growth is %s, it was %s", got, before)
	}
}
