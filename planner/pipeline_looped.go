package planner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// allCuts is the number of ways to cut up to which all are tried.
const allCuts = 5000

// looped is the search for cuts of an interleaved pipeline, where run c of the
// chain is on device c mod p (torch 2.11, distributed/pipelining/_utils.py,
// generate_stage_to_rank_mapping).
type looped struct {
	l        *layout
	schedule costmodel.Schedule
	cuts     []int // of items, length p·v + 1
	share    []float64
	tried    int
}

// score orders cuts: the largest share, then the sum of squares.
type score struct{ most, squares float64 }

func (s score) less(t score) bool {
	return s.most < t.most-1e-12 || s.most < t.most+1e-12 && s.squares < t.squares-1e-12
}

// looped solves an interleaved pipeline: every way to cut where these are
// few, else from runs of even weight by moving cuts while that helps.
func (p *Problem) looped(ctx context.Context, l *layout) (*Solution, error) {
	if len(p.Pins) > 0 {
		return nil, &PatternError{"pin", p.Pins[0].Pattern, "runs of an interleaved pipeline go round the devices: pins are for the other schedules"}
	}
	s := l.newLooped()
	best, exact, stopped := s.search(ctx)
	sol := &Solution{Map: s.unitMap(), Value: best.most, Probes: s.tried, Warnings: p.Costs.Warnings, Even: exact}
	sol.Devices = devicemap.Predict(p.Costs, p.Topology, sol.Map)
	for d := range sol.Devices {
		if sol.Devices[d].Share() > sol.Devices[sol.Bottleneck].Share() {
			sol.Bottleneck = d
		}
	}
	sol.LowerBound, sol.Bound = l.weightBound(), "weights"
	switch {
	case exact:
		sol.Status, sol.LowerBound, sol.Bound = Optimal, sol.Value, "search"
	case stopped:
		sol.Status = LimitReached
	case sol.Value <= sol.LowerBound:
		sol.Status = Optimal
	default:
		sol.Status = Feasible
	}
	if err := sol.verify(p); err != nil {
		return nil, err
	}
	if sol.Value > 1 {
		return sol, p.infeasible(ctx, sol)
	}
	return sol, nil
}

// loopedValue is the largest share that looped reaches.
func (l *layout) loopedValue(ctx context.Context) float64 {
	best, _, _ := l.newLooped().search(ctx)
	return best.most
}

func (l *layout) newLooped() *looped {
	s := &looped{l: l, schedule: l.p.schedule()}
	s.share = make([]float64, s.schedule.Stages)
	s.even()
	return s
}

// even begins with runs of about the same static bytes, an item each at least.
func (s *looped) even() {
	items, k := len(s.l.start)-1, int(s.schedule.Stages*s.schedule.Chunks)
	weight := make([]int64, items+1)
	for i := range items {
		weight[i+1] = weight[i] + s.l.costs.Run(s.l.start[i], s.l.start[i+1]).Static
	}
	s.cuts = make([]int, k+1)
	s.cuts[k] = items
	for c := 1; c < k; c++ {
		target := weight[items] / int64(k) * int64(c)
		at, _ := slices.BinarySearch(weight, target)
		s.cuts[c] = min(max(at, s.cuts[c-1]+1), items-(k-c))
	}
}

// rank is a device's share.
func (s *looped) rank(d int) float64 {
	p := int(s.schedule.Stages)
	place := costmodel.StagePlace{Schedule: s.schedule, Rank: int64(d)}
	for c := d; c < len(s.cuts)-1; c += p {
		place.Chunks = append(place.Chunks, costmodel.Stretch{First: s.l.start[s.cuts[c]], End: s.l.start[s.cuts[c+1]]})
	}
	need := s.l.stages.Looped(place, s.l.device[d].Workspace) + s.l.extra[d]
	return float64(need) / float64(s.l.p.Topology.Devices[d].Budget())
}

func (s *looped) score() score {
	s.tried++
	var out score
	for d := range s.share {
		s.share[d] = s.rank(d)
		out.most = max(out.most, s.share[d])
		out.squares += s.share[d] * s.share[d]
	}
	return out
}

func (s *looped) search(ctx context.Context) (best score, exact, stopped bool) {
	items, k := len(s.l.start)-1, len(s.cuts)-1
	if choose(items-1, k-1) <= allCuts {
		best = score{math.Inf(1), 0}
		var kept []int
		s.each(1, func() {
			if got := s.score(); got.less(best) {
				best, kept = got, slices.Clone(s.cuts)
			}
		})
		s.cuts = kept
		return best, true, false
	}
	best = s.score()
	for gained := true; gained; {
		gained = false
		for lo := 1; lo < k; lo++ {
			for hi := lo; hi < k; hi++ {
				for _, by := range []int{-1, 1} {
					if ctx.Err() != nil {
						return best, false, true
					}
					if s.move(lo, hi, by) {
						if got := s.score(); got.less(best) {
							best, gained = got, true
							continue
						}
						s.shift(lo, hi, -by)
					}
				}
			}
		}
	}
	return best, false, false
}

// each calls f with every way to place the cuts from c on.
func (s *looped) each(c int, f func()) {
	k, items := len(s.cuts)-1, len(s.l.start)-1
	if c == k {
		f()
		return
	}
	for at := s.cuts[c-1] + 1; at <= items-(k-c); at++ {
		s.cuts[c] = at
		s.each(c+1, f)
	}
}

// move shifts cuts lo to hi, so that run lo−1 and run hi trade an item, where
// none becomes empty.
func (s *looped) move(lo, hi, by int) bool {
	if s.cuts[lo]+by <= s.cuts[lo-1] || s.cuts[hi]+by >= s.cuts[hi+1] {
		return false
	}
	s.shift(lo, hi, by)
	return true
}

func (s *looped) shift(lo, hi, by int) {
	for c := lo; c <= hi; c++ {
		s.cuts[c] += by
	}
}

func (s *looped) unitMap() devicemap.Map {
	m := make(devicemap.Map, len(s.l.order))
	for c := range len(s.cuts) - 1 {
		for _, u := range s.l.order[s.l.start[s.cuts[c]]:s.l.start[s.cuts[c+1]]] {
			m[u] = devicemap.Device(c % int(s.schedule.Stages))
		}
	}
	return m
}

// weightBound is a share that no placement is below: what is there throughout
// against all budgets, and the largest item's against the largest budget.
func (l *layout) weightBound() float64 {
	var all, most, budgets, budget int64
	for i := range len(l.start) - 1 {
		n := l.costs.Run(l.start[i], l.start[i+1]).Static
		all, most = all+n, max(most, n)
	}
	for d := range l.device {
		b := l.p.Topology.Devices[d].Budget()
		all, budgets, budget = all+l.extra[d], budgets+b, max(budget, b)
	}
	return max(float64(all)/float64(budgets), float64(most+slices.Min(l.extra))/float64(budget))
}

// choose is n over k, cut off above allCuts.
func choose(n, k int) int {
	c := 1
	for i := range min(k, n-k) {
		if c = c * (n - i) / (i + 1); c > 1<<40 {
			return 1 << 40
		}
	}
	return cmp.Or(c, 1)
}
