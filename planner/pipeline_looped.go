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

// looped is the search for cuts of a pipeline by trial, where run c of the
// chain is on device c mod p (torch 2.11, distributed/pipelining/_utils.py,
// generate_stage_to_rank_mapping).
type looped struct {
	l        *layout
	schedule costmodel.Schedule
	cuts     []int // of items, length p·v + 1
	share    []float64
	tried    int
	pins     []int // device of each item, -1 where free; nil: all are
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
	if s.schedule.Chunks == 1 {
		return float64(s.l.stagePeak(d, s.cuts[d], s.cuts[d+1])) / float64(s.l.p.Topology.Devices[d].Budget())
	}
	place := costmodel.StagePlace{Schedule: s.schedule, Rank: int64(d)}
	for c := d; c < len(s.cuts)-1; c += p {
		place.Chunks = append(place.Chunks, costmodel.Stretch{First: s.l.start[s.cuts[c]], End: s.l.start[s.cuts[c+1]]})
	}
	need := s.l.stages.Looped(place, s.l.device[d].Workspace) + s.l.extra[d]
	return float64(need) / float64(s.l.p.Topology.Devices[d].Budget())
}

func (s *looped) score() score {
	s.tried++
	if !s.keepsPins() {
		return score{math.Inf(1), 0}
	}
	var out score
	for d := range s.share {
		s.share[d] = s.rank(d)
		out.most = max(out.most, s.share[d])
		out.squares += s.share[d] * s.share[d]
	}
	return out
}

func (s *looped) keepsPins() bool {
	for c := range len(s.cuts) - 1 {
		for i := s.cuts[c]; i < s.cuts[c+1] && s.pins != nil; i++ {
			if pin := s.pins[i]; pin >= 0 && pin != c%int(s.schedule.Stages) {
				return false
			}
		}
	}
	return true
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
		if kept != nil {
			s.cuts = kept
		}
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

// weightBound is a share that no cuts are below. At one moment of its own
// each device has at least f micro-batches of every chunk in flight, so that
// together they hold what is there throughout and f times what the units save;
// where all chunks have run back once, their gradients too. The largest item
// is on some device by itself.
func (l *layout) weightBound() float64 {
	var static, saved, grads, most, budgets, budget int64
	for i := range len(l.start) - 1 {
		r := l.costs.Run(l.start[i], l.start[i+1])
		static, saved, grads, most = static+r.Static, saved+l.bareSaved(i), grads+r.Grads, max(most, r.Static)
	}
	for d := range l.device {
		b := l.p.Topology.Devices[d].Budget()
		static, budgets, budget = static+l.extra[d], budgets+b, max(budget, b)
	}
	all := static
	if l.p.Costs.Workload.Mode == costmodel.Train {
		before, after := flying(l.p.schedule())
		all = max(static+before*saved, static+grads+after*saved, static+grads)
	}
	return max(float64(all)/float64(budgets), float64(most+slices.Min(l.extra))/float64(budget))
}

// bareSaved is what an item's units save wherever a cut is: without inputs
// that might be a stage's buffer, and outputs handed on.
func (l *layout) bareSaved(item int) int64 {
	var n int64
	for _, u := range l.order[l.start[item]:l.start[item+1]] {
		unit := &l.p.Costs.Units[u]
		n += max(0, unit.Run().Saved-unit.Handed-unit.Entry)
	}
	return n
}

// flying is, of the device with the least, the most micro-batches that every
// chunk has in flight at one moment: at any, and when all have gradients.
func flying(s costmodel.Schedule) (before, after int64) {
	before, after = math.MaxInt64, math.MaxInt64
	for rank := range s.Stages {
		count, ran := make([]int64, s.Chunks), make([]int64, s.Chunks)
		var b, a int64
		for _, action := range s.Order(rank) {
			if action.Backward {
				count[action.Chunk]--
				ran[action.Chunk] = 1
				continue
			}
			count[action.Chunk]++
			b = max(b, slices.Min(count))
			a = max(a, slices.Min(count)*slices.Min(ran))
		}
		before, after = min(before, b), min(after, a)
	}
	return before, after
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
