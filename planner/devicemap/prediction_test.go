package devicemap

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestWiden: the band is around the peak, or around a given range.
func TestWiden(t *testing.T) {
	for _, c := range []struct {
		band       float64
		from, want []int64
	}{
		{0, nil, nil},
		{0, []int64{1000, 1500}, []int64{1000, 1500}},
		{.1, nil, []int64{900, 1100}},
		{.1, []int64{1000, 1500}, []int64{900, 1650}},
	} {
		p := Predicted{PeakAllocatedBytes: 1000, PeakRangeBytes: c.from}
		p.widen(&costmodel.Table{Band: c.band})
		if !slices.Equal(p.PeakRangeBytes, c.want) {
			t.Errorf("%v by %g: %v, want %v", c.from, c.band, p.PeakRangeBytes, c.want)
		}
	}
	idle := Predicted{}
	idle.widen(&costmodel.Table{Band: .1})
	if idle.PeakRangeBytes != nil {
		t.Errorf("an idle device has the range %v", idle.PeakRangeBytes)
	}
}
