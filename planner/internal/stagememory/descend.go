package stagememory

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// restarts and quickRestarts are the numbers of random changes of the best cuts from which the search
// starts again.
// maxRuns limits the runs that [Looped.level] computes.
const (
	restarts      = 30
	quickRestarts = 3
	maxRuns       = 20_000_000
)

// descend moves cuts as long as the score falls: one cut to any place between its neighbours, or a
// run of cuts by an item.
func (looped *Looped) descend(ctx context.Context) score {
	best := looped.score()
	for gained := true; gained && ctx.Err() == nil; {
		gained = false
		for c := 1; c < len(looped.Cuts)-1 && ctx.Err() == nil; c++ {
			gained = looped.place(c, &best) || gained
		}
		Moves(len(looped.Cuts)-1, func(lo, hi, by int) bool {
			if lo == hi || ctx.Err() != nil || !looped.Move(lo, hi, by) {
				return false
			}
			if got := looped.score(); got.less(best) {
				best, gained = got, true
				return true
			}
			Shift(looped.Cuts, lo, hi, -by)
			looped.score()
			return false
		})
	}
	return best
}

// place moves a cut to the best place between its neighbours. Only the devices of the runs before
// and after it change.
func (looped *Looped) place(c int, best *score) (gained bool) {
	before, after := int(looped.schedule.RunRank(int64(c-1))), int(looped.schedule.RunRank(int64(c)))
	at, x, y := looped.Cuts[c], looped.share[before], looped.share[after]
	for to := looped.Cuts[c-1] + 1; to < looped.Cuts[c+1]; to++ {
		looped.Cuts[c] = to
		looped.share[before], looped.share[after] = looped.Share(before, looped.Cuts), looped.Share(after, looped.Cuts)
		if got := looped.sum(); got.less(*best) {
			*best, at, x, y, gained = got, to, looped.share[before], looped.share[after], true
		}
	}
	looped.Cuts[c], looped.share[before], looped.share[after] = at, x, y
	return gained
}

// kick moves up to three cuts to random places between their neighbours.
func (looped *Looped) kick(rng *rand.Rand) {
	for range 1 + rng.IntN(3) {
		c := 1 + rng.IntN(len(looped.Cuts)-2)
		looped.Cuts[c] = looped.Cuts[c-1] + 1 + rng.IntN(looped.Cuts[c+1]-looped.Cuts[c-1]-1)
	}
}

// level starts from the cuts whose largest share of a single run is least, by a dynamic program
// over all runs. It returns that share, a lower bound for all cuts; 0 if there are too many runs,
// or the context ended.
func (looped *Looped) level(ctx context.Context) float64 {
	items, k := len(looped.Start)-1, len(looped.Cuts)-1
	if items*items*k > maxRuns || looped.schedule.Kind.Vee() {
		return 0
	}
	least, from := make([][]float64, k+1), make([][]int, k+1)
	for c := range k + 1 {
		least[c], from[c] = slices.Repeat([]float64{math.Inf(1)}, items+1), make([]int, items+1)
	}
	least[0][0] = 0
	for c := range k {
		for b := c + 1; b <= items-(k-1-c); b++ {
			if ctx.Err() != nil {
				return 0
			}
			for a := b - 1; a >= c; a-- {
				if least[c][a] >= least[c+1][b] {
					continue
				}
				if got := max(least[c][a], looped.LeastShare(c, a, b)); got < least[c+1][b] {
					least[c+1][b], from[c+1][b] = got, a
				}
			}
		}
	}
	looped.Cuts[k] = items
	for c := k; c > 0; c-- {
		looped.Cuts[c-1] = from[c][looped.Cuts[c]]
	}
	return least[k][items]
}
