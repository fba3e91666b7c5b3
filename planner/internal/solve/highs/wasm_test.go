package highs

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

// TestVendored: the module, its name map and its licence belong together.
func TestVendored(t *testing.T) {
	var n names
	if err := json.Unmarshal(namesJSON, &n); err != nil {
		t.Fatal(err)
	}
	// From the npm package highs@1.15.3.
	const sum = "528be4365bea1d4188988646b244263f50320df55782e14d6af5bce7cd45c840"
	if n.Package != "highs@1.15.3" || n.SHA256 != sum {
		t.Errorf("names.json is for %s %s", n.Package, n.SHA256)
	}
	e, err := compiled() // checks the sum of the module itself
	if err != nil {
		t.Fatal(err)
	}
	exported := e.module.ExportedFunctions()
	for long, short := range n.Exports {
		if exported[short] == nil && long != "" && short != "sc" && short != "u" { // the table and the memory are no functions
			t.Errorf("names.json calls %q %q, which the module does not export", long, short)
		}
	}
	if len(n.Imports) != 20 {
		t.Errorf("%d imports, want 20", len(n.Imports))
	}
}

// TestThrow: what C++ throws, here for an allocation that cannot be, is an error.
func TestThrow(t *testing.T) {
	e, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	in, err := e.instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(context.Background())
	const columns = 1 << 30
	in.must(t.Context(), "Highs_passLp", columns, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	if !errors.Is(in.err, errThrown) {
		t.Errorf("error %v, want %v", in.err, errThrown)
	}
}
