package planner

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
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
	floor    float64 // no cuts have a largest share below it; set by search
}

// score orders cuts: the largest share, then the sum of squares.
type score struct{ most, squares float64 }

func (s score) less(t score) bool {
	return s.most < t.most-1e-12 || s.most < t.most+1e-12 && s.squares < t.squares-1e-12
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
		weight[i+1] = weight[i] + s.l.costs.Summary(s.l.start[i], s.l.start[i+1]).Static
	}
	s.cuts = make([]int, k+1)
	s.cuts[k] = items
	for c := 1; c < k; c++ {
		target := weight[items] / int64(k) * int64(c)
		at, _ := slices.BinarySearch(weight, target)
		s.cuts[c] = min(max(at, s.cuts[c-1]+1), items-(k-c))
	}
}

func (s *looped) search(ctx context.Context) (best score, exact, stopped bool) {
	items, k := len(s.l.start)-1, len(s.cuts)-1
	if choose(items-1, k-1) <= allCuts {
		best = score{math.Inf(1), 0}
		var kept []int
		s.each(ctx, 1, func() {
			if got := s.score(); got.less(best) {
				best, kept = got, slices.Clone(s.cuts)
			}
		})
		if kept != nil {
			s.cuts = kept
		}
		return best, ctx.Err() == nil, ctx.Err() != nil
	}
	best, stopped = s.climb(ctx)
	return best, false, stopped
}

// climb descends from two beginnings and then from places beside the best.
func (s *looped) climb(ctx context.Context) (best score, stopped bool) {
	best = score{math.Inf(1), 0}
	var kept []int
	for _, start := range []func(){s.even, func() { s.floor = s.level(ctx) }} {
		start()
		if got := s.descend(ctx); got.less(best) {
			best, kept = got, slices.Clone(s.cuts)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1)) // the same cuts every time
	for range restarts {
		if ctx.Err() != nil || best.most <= s.floor {
			break
		}
		copy(s.cuts, kept)
		s.kick(rng)
		if got := s.descend(ctx); got.less(best) {
			best, kept = got, slices.Clone(s.cuts)
		}
	}
	s.cuts = kept
	return best, ctx.Err() != nil
}

// each calls f with every way to place the cuts from c on, until the context
// ends.
func (s *looped) each(ctx context.Context, c int, f func()) {
	k, items := len(s.cuts)-1, len(s.l.start)-1
	if c == k {
		f()
		return
	}
	for at := s.cuts[c-1] + 1; at <= items-(k-c); at++ {
		s.cuts[c] = at
		s.each(ctx, c+1, f)
		if ctx.Err() != nil {
			return
		}
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
