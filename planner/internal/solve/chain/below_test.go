package chain

import (
	"testing"
)

// TestBelow: the most bytes with a smaller share, exact beyond the precision of a float64.
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		v            Share
		budget, want int64
	}{
		{Share{Peak: 1, Budget: 2}, 10, 4},
		{Share{Peak: 1, Budget: 3}, 10, 3},
		{Share{Peak: 0, Budget: 3}, 10, -1},
		{Share{Peak: 1<<60 - 1, Budget: 1 << 60}, 1 << 60, 1<<60 - 2},
		{Share{Peak: 5, Budget: 2}, 1 << 40, 5<<39 - 1},
	} {
		if got := c.v.Below(c.budget); got != c.want {
			t.Errorf("below %v of %d: %d, want %d", c.v, c.budget, got, c.want)
		}
	}
}
