package estimate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// seeds are the situations of measured/seeds.json that are text: what NVML
// and the allocator showed (how/measure_seeds.py, 4 × H200).
func seeds(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../fixtures/measured/seeds.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range all {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// scan reads the figures of a row.
func scan(t *testing.T, row, layout string, to ...any) {
	t.Helper()
	if n, err := fmt.Sscanf(row, layout, to...); n != len(to) {
		t.Fatalf("%q as %q: %d figures, %v", row, layout, n, err)
	}
}
