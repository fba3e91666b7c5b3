package modelgraph

import (
	"slices"
	"testing"
)

// TestNearest: distance counts first, then the beginning in common, then the order.
func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"nerms", "form", "born", "nord", "norm", "nora", "attention"}
	if got := Nearest("norm", names, 9, 2); !slices.Equal(got, []string{"norm", "nord", "nora", "form", "nerms", "born"}) {
		t.Errorf("%v", got)
	}
	if got := Nearest("norm", names, 2, 9); !slices.Equal(got, []string{"norm", "nord"}) {
		t.Errorf("the first two: %v", got)
	}
}
