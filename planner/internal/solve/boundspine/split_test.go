package boundspine

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCovered: whatever goes, some row has a way of no more load that leaves the
// right stage no more to do, and whose sizes include what goes.
func TestCovered(t *testing.T) {
	t.Parallel()
	const count = 15
	random := rand.New(rand.NewPCG(7, 1))
	var parts []part
	for range count {
		parts = append(parts, part{
			size: float64(random.IntN(50)), load: random.Float64() - 0.1,
			right: random.Float64(), stays: 2 * random.Float64(),
		})
	}
	var of split
	of.fill(parts)
	ways := 0
	for _, row := range of.rows {
		ways += len(row.load)
	}
	if ways >= 1<<count {
		t.Errorf("%d ways of %d: nothing was joined", ways, 1<<count)
	}
	for set := range 1 << count {
		size, load, right := 0.0, 0.0, 0.0
		for i, part := range parts {
			if set>>i&1 == 1 {
				size, load, right = size+part.size, load+part.load, right+part.right
			} else {
				right += part.stays
			}
		}
		if !of.covers(size, load, right) {
			t.Fatalf("%b: a size of %v, a load of %v and %v for the right are in no row", set, size, load, right)
		}
	}
}

func (out *split) covers(size, load, right float64) bool {
	const rounding = 1e-9
	for i := range out.rows {
		row := &out.rows[i]
		at := row.within(load+rounding, math.Inf(1))
		if at >= 0 && row.right[at] <= right+rounding && row.least[at] <= size && size <= row.most[at] {
			return true
		}
	}
	return false
}
