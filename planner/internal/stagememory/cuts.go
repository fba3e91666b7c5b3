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

// allCuts is the most cuts that the search tries exhaustively.
const allCuts = 5000

// Looped searches the cuts of a pipeline by trial. Run c of the chain is on device c mod p, or in a V
// ([costmodel.Schedule.RunRank]; torch 2.11, distributed/pipelining/_utils.py,
// generate_stage_to_rank_mapping).
type Looped struct {
	*instance.StagePeaks
	Cuts     []int // of items, length p·v + 1; 2p in a V
	Quick    bool  // few random changes, and a short proof
	schedule costmodel.Schedule
	share    []float64
	tried    int
	floor    float64 // lower bound of the largest share of any cuts; set by search
	bound    string  // its name
}

// score orders cuts: the largest share, then the sum of squares.
type score struct{ most, squares float64 }

func (s score) less(t score) bool {
	return s.most < t.most-1e-12 || s.most < t.most+1e-12 && s.squares < t.squares-1e-12
}

// NewLooped returns a search that starts with even cuts.
func NewLooped(peaks *instance.StagePeaks) *Looped {
	looped := &Looped{StagePeaks: peaks, schedule: peaks.In.Schedule()}
	looped.share = make([]float64, looped.schedule.Stages)
	looped.Even()
	return looped
}

// Even sets cuts with about the same static bytes per run and at least one item each.
func (looped *Looped) Even() {
	items, k := len(looped.Start)-1, int(looped.schedule.Runs())
	weight := make([]int64, items+1)
	for i := range items {
		weight[i+1] = weight[i] + looped.Costs(looped.Start[i], looped.Start[i+1]).Static
	}
	looped.Cuts = make([]int, k+1)
	looped.Cuts[k] = items
	for c := 1; c < k; c++ {
		target := weight[items] / int64(k) * int64(c)
		if ranks := int(looped.schedule.Stages); looped.schedule.Kind.Vee() { // the last rank's run is two stages
			stages := c
			if c >= ranks {
				stages++
			}
			target = weight[items] / int64(k+1) * int64(stages)
		}
		at, _ := slices.BinarySearch(weight, target)
		looped.Cuts[c] = min(max(at, looped.Cuts[c-1]+1), items-(k-c))
	}
}

// Few reports that there are few enough cuts to try all.
func (looped *Looped) Few() bool { return choose(looped.Count()-1, len(looped.Cuts)-2) <= allCuts }

// search tries all cuts if there are few. Otherwise it climbs.
func (looped *Looped) search(ctx context.Context) (best score, exact, stopped bool) {
	if looped.Few() {
		best = score{math.Inf(1), 0}
		var bestCuts []int
		looped.Each(ctx, 1, func() {
			if got := looped.score(); got.less(best) {
				best, bestCuts = got, slices.Clone(looped.Cuts)
			}
		})
		if bestCuts != nil {
			looped.Cuts = bestCuts
		}
		return best, ctx.Err() == nil, ctx.Err() != nil
	}
	best, stopped = looped.climb(ctx)
	return best, false, stopped
}

// climb descends from two starts, then from random changes of the best cuts.
func (looped *Looped) climb(ctx context.Context) (best score, stopped bool) {
	looped.Even()
	bound, set := 0., false
	if !looped.schedule.Kind.Vee() {
		bound, set = looped.counts(ctx, looped.score().most*(1+1e-9))
	}
	if looped.floor, looped.bound = bound*(1+1e-12), "numbers of blocks"; set {
		if best = looped.score(); best.most <= looped.floor {
			if !looped.Quick {
				best = looped.descend(ctx) // balanced within that share
			}
			return best, false
		}
	}
	best = score{math.Inf(1), 0}
	var bestCuts []int
	for _, start := range []func(){looped.Even, func() {
		if least := looped.level(ctx); least > looped.floor {
			looped.floor, looped.bound = least, "largest run"
		}
	}} {
		start()
		if got := looped.descend(ctx); got.less(best) {
			best, bestCuts = got, slices.Clone(looped.Cuts)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1)) // fixed seed: the same cuts every time
	again := restarts
	if looped.Quick {
		again = quickRestarts
	}
	for range again {
		if ctx.Err() != nil || best.most <= looped.floor {
			break
		}
		copy(looped.Cuts, bestCuts)
		looped.kick(rng)
		if got := looped.descend(ctx); got.less(best) {
			best, bestCuts = got, slices.Clone(looped.Cuts)
		}
	}
	looped.Cuts = bestCuts
	return best, ctx.Err() != nil
}

// Each calls f with every placement of the cuts from c on, until the context ends.
func (looped *Looped) Each(ctx context.Context, c int, f func()) {
	k, items := len(looped.Cuts)-1, len(looped.Start)-1
	if c == k {
		f()
		return
	}
	for at := looped.Cuts[c-1] + 1; at <= items-(k-c); at++ {
		looped.Cuts[c] = at
		looped.Each(ctx, c+1, f)
		if ctx.Err() != nil {
			return
		}
	}
}

// Move shifts cuts lo to hi by some items, from one end run to the other. It returns false if a run
// would become empty.
func (looped *Looped) Move(lo, hi, by int) bool {
	if looped.Cuts[lo]+by <= looped.Cuts[lo-1] || looped.Cuts[hi]+by >= looped.Cuts[hi+1] {
		return false
	}
	Shift(looped.Cuts, lo, hi, by)
	return true
}

// Shift moves the cuts lo to hi by so many items.
func Shift(cuts []int, lo, hi, by int) {
	for c := lo; c <= hi; c++ {
		cuts[c] += by
	}
}

// choose returns the binomial coefficient of count and k, limited to 1<<40.
func choose(count, k int) int {
	c := 1
	for i := range min(k, count-k) {
		if c = c * (count - i) / (i + 1); c > 1<<40 {
			return 1 << 40
		}
	}
	return cmp.Or(c, 1)
}

// Moves tries every run of cuts one item down and up, until none helps.
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
