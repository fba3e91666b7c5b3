package main

import (
	"strings"
	"testing"
)

// TestFigures holds a sample of what make programs prints to itself.
func TestFigures(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(&out, "", scope{microBatches: 5, layers: 8, every: 11}); err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.Contains(out.String(), "\n"+family.name+" ") {
			t.Errorf("nothing of %s in:\n%s", family.name, out.String())
		}
	}
}
