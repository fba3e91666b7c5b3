package planner

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Bounds of the search for what leaves: sets looked at, and sets for which
// the rest was placed.
const (
	mostLeavings = 200_000
	mostPlacings = 1500
)

// leaving is the search for the units that leave: sets in the order of what
// travels, until one leaves a rest that fits. Units with equal costs are a
// class; of a class, the first leave, next to the first device, which runs
// them, or the last.
type leaving struct {
	p       *Problem
	classes []leavingClass
	least   int64 // what stays holds at least, with nothing left
	budgets int64
}

// left is a set of units that left, and the map of the rest.
type left struct {
	units []int
	sol   *claimed
	bytes float64 // by the order of sets; NaN where that was left
}

// run is the first set, by bytes, whose rest fits; and the bytes that no set
// is below: the first that frees what the devices lack in sum.
func (s *leaving) run(ctx context.Context, limits Settings) (*left, int64) {
	order := newLeavingOrder(s.classes)
	bound, placed := int64(-1), 0
	for n := 0; ; n++ {
		set, ok := order.next()
		if !ok {
			return nil, max(0, bound)
		}
		if s.least-set.frees <= s.budgets {
			if bound < 0 {
				bound = set.bytes
			}
			placed++
			if got := s.try(ctx, set.counts, limits); got != nil {
				got.bytes = float64(set.bytes)
				return got, bound
			}
		}
		if n > mostLeavings || placed > mostPlacings || ctx.Err() != nil {
			if bound < 0 {
				bound = max(set.bytes, s.floor())
			}
			return s.nearest(ctx, limits), bound
		}
	}
}

// floor is a number of bytes that every set which frees enough has: what is
// lacking, at the least bytes for what they free.
func (s *leaving) floor() int64 {
	ratio := math.Inf(1)
	for c := range s.classes {
		ratio = min(ratio, float64(s.classes[c].bytes)/float64(s.classes[c].frees))
	}
	return int64(float64(s.least-s.budgets) * ratio * (1 - tolerance))
}

// try places what stays where these many of each class left.
func (s *leaving) try(ctx context.Context, counts []uint16, limits Settings) *left {
	front := s.units(counts, false)
	got := s.tryUnits(ctx, front, limits)
	if got == nil {
		if back := s.units(counts, true); !slices.Equal(front, back) {
			got = s.tryUnits(ctx, back, limits)
		}
	}
	return got
}

func (s *leaving) tryUnits(ctx context.Context, units []int, limits Settings) *left {
	q := s.p.without(units)
	if q.place(ctx, chain.Settings{NoSquares: true, Probes: limits.Probes}) == nil {
		return nil
	}
	sol := q.place(ctx, chain.Settings{Probes: limits.Probes, Progress: limits.Progress})
	if sol == nil {
		return nil
	}
	return &left{units, sol, math.NaN()}
}

// units are the first, or the last, of each class.
func (s *leaving) units(counts []uint16, last bool) []int {
	var out []int
	for c, n := range counts {
		sets := s.classes[c].sets[:n]
		if all := s.classes[c].sets; last {
			sets = all[len(all)-int(n):]
		}
		for _, set := range sets {
			out = append(out, set...)
		}
	}
	slices.Sort(out)
	return out
}

// most says what the devices lack where as much left as can.
func (s *leaving) most(ctx context.Context) string {
	if len(s.classes) == 0 {
		return "nothing may leave"
	}
	all := make([]uint16, len(s.classes))
	for c := range all {
		all[c] = uint16(len(s.classes[c].sets))
	}
	q := s.p.without(s.units(all, false))
	l, fixed, err := q.layout()
	if err != nil {
		return ""
	}
	sol, err := l.solve(ctx, fixed, chain.Settings{})
	if err != nil {
		return ""
	}
	w := &sol.Devices[sol.Bottleneck]
	need := w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes
	if need <= w.Budget() {
		return "with all that may leave on the host, no unit stays on device 0, which would run them"
	}
	return "with all that may leave on the host, " + costText(sol.Bottleneck, need, w.Budget())
}
