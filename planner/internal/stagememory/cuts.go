package stagememory

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// allCuts is the number of ways to cut up to which all are tried.
const allCuts = 5000

// Looped is the search for cuts of a pipeline by trial, where run c of the
// chain is on device c mod p (torch 2.11, distributed/pipelining/_utils.py,
// generate_stage_to_rank_mapping).
type Looped struct {
	*instance.StagePeaks
	Cuts     []int // of items, length p·v + 1
	schedule costmodel.Schedule
	share    []float64
	tried    int
	floor    float64 // no cuts have a largest share below it; set by search
}

// score orders cuts: the largest share, then the sum of squares.
type score struct{ most, squares float64 }

func (s score) less(t score) bool {
	return s.most < t.most-1e-12 || s.most < t.most+1e-12 && s.squares < t.squares-1e-12
}

// NewLooped begins with even cuts.
func NewLooped(peaks *instance.StagePeaks) *Looped {
	s := &Looped{StagePeaks: peaks, schedule: peaks.In.Schedule()}
	s.share = make([]float64, s.schedule.Stages)
	s.Even()
	return s
}

// Even begins with runs of about the same static bytes, an item each at least.
func (s *Looped) Even() {
	items, k := len(s.Start)-1, int(s.schedule.Stages*s.schedule.Chunks)
	weight := make([]int64, items+1)
	for i := range items {
		weight[i+1] = weight[i] + s.Costs.Summary(s.Start[i], s.Start[i+1]).Static
	}
	s.Cuts = make([]int, k+1)
	s.Cuts[k] = items
	for c := 1; c < k; c++ {
		target := weight[items] / int64(k) * int64(c)
		at, _ := slices.BinarySearch(weight, target)
		s.Cuts[c] = min(max(at, s.Cuts[c-1]+1), items-(k-c))
	}
}

// Few reports that the ways to cut are few enough to try all.
func (s *Looped) Few() bool { return choose(s.Count()-1, len(s.Cuts)-2) <= allCuts }

// search tries all cuts where these are few, and else climbs.
func (s *Looped) search(ctx context.Context) (best score, exact, stopped bool) {
	if s.Few() {
		best = score{math.Inf(1), 0}
		var kept []int
		s.Each(ctx, 1, func() {
			if got := s.score(); got.less(best) {
				best, kept = got, slices.Clone(s.Cuts)
			}
		})
		if kept != nil {
			s.Cuts = kept
		}
		return best, ctx.Err() == nil, ctx.Err() != nil
	}
	best, stopped = s.climb(ctx)
	return best, false, stopped
}

// climb descends from two beginnings and then from places beside the best.
func (s *Looped) climb(ctx context.Context) (best score, stopped bool) {
	best = score{math.Inf(1), 0}
	var kept []int
	for _, start := range []func(){s.Even, func() { s.floor = s.level(ctx) }} {
		start()
		if got := s.descend(ctx); got.less(best) {
			best, kept = got, slices.Clone(s.Cuts)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1)) // the same cuts every time
	for range restarts {
		if ctx.Err() != nil || best.most <= s.floor {
			break
		}
		copy(s.Cuts, kept)
		s.kick(rng)
		if got := s.descend(ctx); got.less(best) {
			best, kept = got, slices.Clone(s.Cuts)
		}
	}
	s.Cuts = kept
	return best, ctx.Err() != nil
}

// Each calls f with every way to place the cuts from c on, until the context
// ends.
func (s *Looped) Each(ctx context.Context, c int, f func()) {
	k, items := len(s.Cuts)-1, len(s.Start)-1
	if c == k {
		f()
		return
	}
	for at := s.Cuts[c-1] + 1; at <= items-(k-c); at++ {
		s.Cuts[c] = at
		s.Each(ctx, c+1, f)
		if ctx.Err() != nil {
			return
		}
	}
}

// Move shifts cuts lo to hi, so that run lo−1 and run hi trade an item, where
// none becomes empty.
func (s *Looped) Move(lo, hi, by int) bool {
	if s.Cuts[lo]+by <= s.Cuts[lo-1] || s.Cuts[hi]+by >= s.Cuts[hi+1] {
		return false
	}
	s.Shift(lo, hi, by)
	return true
}

// Shift moves cuts lo to hi by so many items.
func (s *Looped) Shift(lo, hi, by int) {
	for c := lo; c <= hi; c++ {
		s.Cuts[c] += by
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

// Moves tries every stretch of cuts one item down and up, until none helps.
func Moves(k int, try func(lo, hi, by int) bool) {
	for gained := true; gained; {
		gained = false
		for lo := 1; lo < k; lo++ {
			for hi := lo; hi < k; hi++ {
				for _, by := range []int{-1, 1} {
					gained = try(lo, hi, by) || gained
				}
			}
		}
	}
}
