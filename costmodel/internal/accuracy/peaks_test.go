package accuracy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// peaks is a table of rows with the peak of each GPU, predicted and measured.
type peaks struct {
	text strings.Builder
	off  []float64 // percent, absolute
}

func newPeaks() *peaks {
	table := &peaks{}
	fmt.Fprintf(&table.text, "\n%-48s GPU  predicted   measured    error  MiB off  at\n", "row (GiB)")
	return table
}

// add predicts a row and checks each GPU's error against a bound, in percent.
func (table *peaks) add(t *testing.T, r *row, worst float64) {
	t.Helper()
	devices := predictRow(t, r)
	for d, measured := range r.peak {
		got := devices[d].Predicted
		percent := 100 * (float64(got.PeakAllocatedBytes)/float64(measured) - 1)
		fmt.Fprintf(&table.text, "%-48s %3d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", r.name(), d,
			gib(got.PeakAllocatedBytes), gib(measured), percent, float64(got.PeakAllocatedBytes-measured)/(1<<20), got.PeakAt)
		table.off = append(table.off, math.Abs(percent))
		if math.Abs(percent) > worst {
			t.Errorf("%s, GPU %d: predicted %d B, measured %d B, off by %+.3f %%; the bound is %g %%", r.name(), d, got.PeakAllocatedBytes, measured, percent, worst)
		}
	}
}

// end prints the table, and checks the median error against a bound, in percent.
func (table *peaks) end(t *testing.T, group string, middle float64) {
	t.Helper()
	if median := summary(t, &table.text, group, table.off); median > middle {
		t.Errorf("a median of %.3f %%; the bound is %g %%", median, middle)
	}
	t.Log(table.text.String())
}
