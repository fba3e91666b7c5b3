package layers_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
)

// TestNF4Tables: a block that is not full has its maximum too, and so has a
// group of maxima (bitsandbytes/functional.py: quantize_4bit).
func TestNF4Tables(t *testing.T) {
	for _, c := range []struct {
		n    int64
		flat bool
		want []int64
	}{
		{64, true, []int64{32, 4, 64}},
		{65, true, []int64{33, 8, 64}},
		{65, false, []int64{33, 2, 64, 4, 4, 1024}},
		{64 * 256, false, []int64{8192, 256, 64, 4, 4, 1024}},
		{64*256 + 1, false, []int64{8193, 257, 64, 8, 4, 1024}},
	} {
		if got := layers.NF4(c.n, c.flat); !slices.Equal(got, c.want) {
			t.Errorf("%d weights, flat %t: %v, want %v", c.n, c.flat, got, c.want)
		}
	}
}
