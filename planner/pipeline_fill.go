package planner

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/chain"
)

// fill gives every stage an item, where the solver left some empty as another
// sets the largest share anyway: it moves the cuts apart, and then searches
// from there.
func (l *layout) fill(ctx context.Context, r *chain.Result, fixed *pins) error {
	k := len(r.Cuts) - 1
	moved := false
	for d := 1; d < k; d++ {
		if r.Cuts[d] <= r.Cuts[d-1] {
			r.Cuts[d], moved = r.Cuts[d-1]+1, true
		}
	}
	for d := k - 1; d > 0; d-- {
		if r.Cuts[d] >= r.Cuts[d+1] {
			r.Cuts[d], moved = r.Cuts[d+1]-1, true
		}
	}
	if !moved {
		return nil
	}
	s := l.newLooped()
	s.pins = fixed.items
	copy(s.cuts, r.Cuts)
	best, exact, stopped := s.search(ctx)
	if math.IsInf(best.most, 1) {
		return &StageError{"pin", k, len(fixed.items), fmt.Sprintf("no map was found that keeps the pins and has a unit on each of the %d stages", k)}
	}
	r.Cuts, r.Optimal, r.SquaresOptimal, r.Stopped = s.cuts, exact, exact, r.Stopped || stopped
	r.Value = chain.Share{Peak: 0, Budget: 1}
	for d := range k {
		r.Peaks[d] = l.stagePeak(d, r.Cuts[d], r.Cuts[d+1])
		if share := (chain.Share{Peak: r.Peaks[d], Budget: l.p.Topology.Devices[d].Budget()}); r.Value.Cmp(share) < 0 {
			r.Value, r.Bottleneck = share, d
		}
	}
	if exact {
		r.LowerBound, r.Bound = r.Value, chain.BoundSearch
	}
	return nil
}

// uniform reports that all messages between stages have one size, so that a
// stage never holds less with more units: what the solver's proofs rest on.
func (l *layout) uniform() bool {
	units := l.p.Costs.Units
	for u := range max(0, len(units)-1) {
		if units[u].Output != units[0].Output {
			return false
		}
	}
	return true
}
