package pairs

import (
	"slices"
	"testing"
)

// TestThin: of the labels of a state that share a cell of loads and of bytes the one of the
// least second load is left, in the order of the first, and what other states have.
func TestThin(t *testing.T) {
	other := Label{9, 9, 0}
	labels := []Label{{0, 8, 0}, {1, 7, 0}, {2, 6, 7}, {3, 5, 0}, {4, 4, 7}}
	plain, bound := &space{}, &space{bound: true, high: 8, scale: 1}
	for _, want := range []struct {
		most  int
		space *space
		kept  []int32
	}{
		{5, plain, []int32{0, 1, 2, 3, 4}},
		{2, plain, []int32{1, 3, 4}}, // the last has a cell of its own
		{1, plain, []int32{3, 4}},
		{1, bound, []int32{2, 3, 4}},
	} {
		divide := &Divider{next: slices.Concat([]Label{other}, labels), traces: []int32{99, 0, 1, 2, 3, 4}}
		divide.thin(1, want.most, want.space)
		if !slices.Equal(divide.traces, slices.Concat([]int32{99}, want.kept)) {
			t.Errorf("at most %d, bytes bind: %v: %v are left, want %v", want.most, want.space.bound, divide.traces[1:], want.kept)
		}
		for i, label := range divide.next[1:] {
			if label != labels[divide.traces[i+1]] {
				t.Errorf("%v is left, want %v", label, labels[divide.traces[i+1]])
			}
		}
	}
}
