package chaintime

import (
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// candidate is a map with its figures.
type candidate struct {
	*placed
	m           devicemap.Map
	step, share float64
}

// better compares as the objective does: the step, the largest share, what
// crosses, and then devices in order.
func (a *candidate) better(b *candidate) bool {
	switch {
	case b == nil:
		return true
	case !Same(a.step, b.step):
		return a.step < b.step
	case math.Abs(a.share-b.share) > instance.Tolerance:
		return a.share < b.share
	}
	return a.simpler(b.placed)
}

// same reports equal times, but for the rounding of sums.
func Same(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(a, b) }

func (t *sequential) scored(s *search, m *placed) *candidate {
	f := &candidate{placed: m, m: s.unitMap(m), share: t.share(s.fixedPoint, m)}
	f.step = *devicemap.StepSeconds(t.in.Costs, t.in.Topology, f.m)
	return f
}

// share is the largest of a map.
func (t *sequential) share(s *fixedPoint, m *placed) float64 {
	out := 0.
	first, end, held := make([]int, s.devices), make([]int, s.devices), make([]uint64, s.devices)
	for i, d := range m.items {
		if end[d] == 0 {
			first[d] = i
		}
		end[d] = i + 1
	}
	for g, d := range m.groups {
		held[d] |= 1 << g
	}
	for d := range first {
		need := t.idle[d]
		if end[d] > 0 || held[d] != 0 {
			need = s.peaks.Peak(d, first[d], end[d], held[d])
		}
		out = max(out, float64(need)/float64(t.in.Topology.Devices[d].Budget()))
	}
	return out
}
