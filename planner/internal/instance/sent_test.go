package instance_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestSent counts by hand. The next unit reads the outputs of h.0 and h.1, 8 B and 16 B per
// micro-batch; h.2's output is the model's.
func TestSent(t *testing.T) {
	p := randomproblem.Chain(t, []int64{1, 1, 1}, 100, 100)
	p.Costs.Workload = costmodel.Workload{Mode: costmodel.Train, MicroBatches: 2}
	p.Costs.OutputBytes = 5
	for u := range p.Costs.Units {
		p.Costs.Units[u].Work.Output = 8 << u
	}
	in := randomproblem.Instance(t, &p)
	for _, c := range []struct {
		m          devicemap.Map
		want       int64
		contiguous bool
	}{
		{devicemap.Map{0, 0, 0}, 0, true},
		{devicemap.Map{0, 0, 1}, 2 * (2*16 + 5), true},
		{devicemap.Map{0, 1, 0}, 2 * 2 * (8 + 16), false},
		{devicemap.Map{1, 0, 0}, 2 * 2 * 8, false},
	} {
		if got := in.Sent(c.m); got != c.want || in.Contiguous(c.m) != c.contiguous {
			t.Errorf("%v: %d sent, want %d; contiguous %t", c.m, got, c.want, in.Contiguous(c.m))
		}
	}
}
