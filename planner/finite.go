package planner

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// finite refuses costs that are no numbers, or negative: sums and comparisons
// with them mean nothing.
func finite(t *costmodel.Table) error {
	for u := range t.Units {
		w := &t.Units[u].Work
		for _, c := range []struct {
			name  string
			value float64
		}{
			{"forward", total(w.Forward)},
			{"backward", total(w.Backward)},
			{"token", total(w.Token)},
			{"update", w.Update},
			{"FLOPs", t.Units[u].FLOPs},
		} {
			if math.IsNaN(c.value) || math.IsInf(c.value, 0) || c.value < 0 {
				return fmt.Errorf("planner: unit %q: its %s cost is %v: costs must be finite and not negative", t.Units[u].Name, c.name, c.value)
			}
		}
	}
	return nil
}

// total is NaN, infinite or negative where a part is.
func total(p costmodel.Pass) float64 {
	if low := min(p.Products, p.Attention, p.Traffic, p.Kernels, p.Profiled); low < 0 {
		return low
	}
	return p.Products + p.Attention + p.Traffic + p.Kernels + p.Profiled
}
