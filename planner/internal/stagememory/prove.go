package stagememory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// endsPerSecond is the number of ends of runs that [Looped.prove] tries per second of the time
// limit. A core tries three to five times as many. So a proof that does not succeed ends by this
// number and not by the clock. Its result decides the answer's step, which must be the same on
// every machine.
const endsPerSecond = 500_000

// quickEnds is their number for one of many forms.
const quickEnds = 25_000

// proofEnds returns the number of ends that a proof tries for a time limit. It rounds up to whole
// seconds, as some time has passed before the search starts.
func proofEnds(effort time.Duration) int {
	return int(math.Ceil(cmp.Or(effort, 10*time.Second).Seconds())) * endsPerSecond
}

// prove searches all cuts for a smaller largest share than that of best, the score of the present
// cuts. It goes depth first, run after run. It sets the best cuts, and returns their score and
// whether it is proved. The proof fails if the context ends, or after maxEnds ends.
//
// A branch ends if a device is too full, with one of its runs or with all. It also ends if the
// later runs cannot take the items left ([Looped.suffix]).
func (looped *Looped) prove(ctx context.Context, best score, maxEnds int) (score, bool) {
	search := &proof{Looped: looped, ctx: ctx, best: best, maxEnds: maxEnds, bestCuts: slices.Clone(looped.Cuts), rest: looped.suffix(ctx)}
	if search.rest == nil {
		return best, false
	}
	search.run(0)
	proved := ctx.Err() == nil && search.ends < search.maxEnds
	copy(looped.Cuts, search.bestCuts)
	if search.best.less(best) {
		return looped.descend(ctx), proved // balanced within that share
	}
	return search.best, proved
}

// proof is the state of [Looped.prove].
type proof struct {
	*Looped
	ctx      context.Context
	best     score
	bestCuts []int
	ends     int // ends tried
	maxEnds  int
	rest     [][]float64 // least largest share of the runs from c on with the items from a on
}

// run tries every end of run c, whose start is fixed.
func (search *proof) run(c int) {
	looped := search.Looped
	k, items, ranks := len(looped.Cuts)-1, looped.Count(), len(looped.share)
	if c == k {
		if got := looped.score(); got.less(search.best) {
			search.best = got
			copy(search.bestCuts, looped.Cuts)
		}
		return
	}
	a, first, last := looped.Cuts[c], looped.Cuts[c]+1, items-(k-1-c)
	if c == k-1 {
		first = items
	}
	for b := first; b <= last; b++ {
		search.ends++
		if search.ends >= search.maxEnds || search.ctx.Err() != nil {
			return
		}
		below := search.best.most * (1 - 1e-9)
		if search.rest[c+1][b] >= below || looped.LeastShare(c, a, b) >= below {
			continue
		}
		looped.Cuts[c+1] = b
		if c+ranks >= k && looped.Share(c%ranks, looped.Cuts) >= below {
			continue
		}
		search.run(c + 1)
	}
}

// suffix returns a lower bound of some device's share, for the runs from c on and the items from a
// on. It is the dynamic program of [Looped.level] from the end. It returns nil if there are too
// many runs, or the context ended.
func (looped *Looped) suffix(ctx context.Context) [][]float64 {
	items, k := looped.Count(), len(looped.Cuts)-1
	if items*items*k > maxRuns {
		return nil
	}
	rest := make([][]float64, k+1)
	for c := range rest {
		rest[c] = slices.Repeat([]float64{math.Inf(1)}, items+1)
	}
	rest[k][items] = 0
	for c := k - 1; c >= 0; c-- {
		for a := c; a < items; a++ {
			if ctx.Err() != nil {
				return nil
			}
			for b := a + 1; b <= items; b++ {
				if rest[c+1][b] < rest[c][a] {
					rest[c][a] = min(rest[c][a], max(rest[c+1][b], looped.LeastShare(c, a, b)))
				}
			}
		}
	}
	return rest
}
