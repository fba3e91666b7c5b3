package anymemory

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// search is one search for a map of any form.
type search struct {
	problem  *anywhere.Problem
	ctx      context.Context
	progress func(chain.Progress)
	rng      *rand.Rand

	loads []*anywhere.Load // the map at hand
	best  [][]int          // counts per device and class of the best map
	value chain.Share
	// squares is the sum of squared shares of best, idle devices counted with
	// their overhead so that leaving one idle gains nothing.
	squares float64

	unit    chain.Share       // the largest item's share
	moments []anywhere.Moment // the arguments of the average
	average float64           // the best of them
	at      string            // its moment
	refuted float64           // no map has a smaller share: by the search
	relaxed float64           // likewise, by that of the relaxed problem
	rounds  int               // of prove; 0: as many as there is time for
	targets int
	proved  bool // every share below value was refuted
}

func newSearch(ctx context.Context, sc *anywhere.Problem, limits instance.Limits) *search {
	a := &search{problem: sc, ctx: ctx, progress: limits.Progress, rng: rand.New(rand.NewPCG(1, 2))}
	if !sc.TooLarge {
		for d := range sc.Devices {
			a.loads = append(a.loads, sc.NewLoad(d))
		}
	}
	a.unit, _ = sc.LargestItem()
	all := sc.Moments()
	a.average, a.at = sc.Average(all)
	a.moments = sc.Tightest(all, a.average)
	return a
}

func (a *search) stopped() bool { return a.ctx.Err() != nil }

// lower is the best bound so far.
func (a *search) lower() float64 { return max(a.unit.Float(), a.average, a.refuted, a.relaxed) }

// closed reports that no map is better than the best.
func (a *search) closed() bool {
	return a.proved || a.unit.Cmp(a.value) >= 0 || a.lower() >= a.value.Float()*(1-rounding)
}

// rounding is that of a quotient of two whole numbers of bytes.
const rounding = 1e-15

// offer takes a map that is better than the best so far.
func (a *search) offer(counts [][]int) {
	a.load(counts)
	a.keep()
}

func (a *search) load(counts [][]int) {
	for d, l := range a.loads {
		for c, n := range counts[d] {
			l.Set(c, n)
		}
	}
}

// keep remembers the map at hand if it is better than the best.
func (a *search) keep() {
	value, squares := a.score()
	if by := value.Cmp(a.value); a.best != nil && (by > 0 || by == 0 && squares >= a.squares*(1-instance.Tolerance)) {
		return
	}
	a.value, a.squares, a.best = value, squares, nil
	for _, l := range a.loads {
		a.best = append(a.best, slices.Clone(l.Counts))
	}
	if a.progress != nil {
		a.progress(chain.Progress{Probes: a.targets, Best: value, Lower: chain.Share{Peak: int64(a.lower() * (1 << 40)), Budget: 1 << 40}})
	}
}

// score is the largest share of the map at hand and the sum of squares.
func (a *search) score() (value chain.Share, squares float64) {
	value.Budget = 1
	for d, l := range a.loads {
		s := l.Share()
		if s.Cmp(value) > 0 {
			value = s
		}
		f := max(s.Float(), float64(a.problem.Devices[d].Overhead)/float64(a.problem.Devices[d].Budget))
		squares += f * f
	}
	return value, squares
}
