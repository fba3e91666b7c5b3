package program

import (
	"slices"
	"testing"
)

func TestUnitNames(t *testing.T) {
	t.Parallel()
	got := UnitNames([]string{"model.layers.0", "a b", "a-b", "", "a_b_2", "x[1]", ""})
	if want := []string{"model.layers.0", "a_b", "a_b_2", "_2", "a_b_2_2", "x[1]", "_3"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}
