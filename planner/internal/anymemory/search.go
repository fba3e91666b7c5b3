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
	best  [][]int          // counts per device and kind of the best map
	value chain.Share
	// squares is the sum of squared shares of best, idle devices counted with
	// their overhead so that leaving one idle gains nothing.
	squares float64

	unit    chain.Share             // the largest item's share
	moments []anywhere.MemoryMoment // the arguments of the average
	average float64                 // the best of them
	at      string                  // its moment
	refuted float64                 // no map has a smaller share: by the search
	relaxed float64                 // likewise, by that of the relaxed problem
	rounds  int                     // of prove; 0: as many as there is time for
	targets int
	proved  bool // every share below value was refuted
}

func newSearch(ctx context.Context, problem *anywhere.Problem, limits instance.Limits) *search {
	state := &search{problem: problem, ctx: ctx, progress: limits.Progress, rng: rand.New(rand.NewPCG(1, 2))}
	if !problem.TooLarge {
		for device := range problem.Devices {
			state.loads = append(state.loads, problem.NewLoad(device))
		}
	}
	state.unit, _ = problem.LargestItem()
	all := problem.Moments()
	state.average, state.at = problem.Average(all)
	state.moments = problem.Tightest(all, state.average)
	return state
}

func (state *search) stopped() bool { return state.ctx.Err() != nil }

// lower is the best bound so far.
func (state *search) lower() float64 {
	return max(state.unit.Float(), state.average, state.refuted, state.relaxed)
}

// closed reports that no map is better than the best.
func (state *search) closed() bool {
	return state.proved || state.unit.Cmp(state.value) >= 0 || state.lower() >= state.value.Float()*(1-rounding)
}

// rounding is that of a quotient of two whole numbers of bytes.
const rounding = 1e-15

// offer takes a map that is better than the best so far.
func (state *search) offer(counts [][]int) {
	state.load(counts)
	state.keep()
}

func (state *search) load(counts [][]int) {
	for device, load := range state.loads {
		for kind, count := range counts[device] {
			load.Set(kind, count)
		}
	}
}

// keep remembers the map at hand if it is better than the best.
func (state *search) keep() {
	value, squares := state.score()
	if by := value.Cmp(state.value); state.best != nil && (by > 0 || by == 0 && squares >= state.squares*(1-instance.Tolerance)) {
		return
	}
	state.value, state.squares, state.best = value, squares, nil
	for _, load := range state.loads {
		state.best = append(state.best, slices.Clone(load.Counts))
	}
	if state.progress != nil {
		state.progress(chain.Progress{Probes: state.targets, Best: value, Lower: chain.Share{Peak: int64(state.lower() * (1 << 40)), Budget: 1 << 40}})
	}
}

// score is the largest share of the map at hand and the sum of squares.
func (state *search) score() (value chain.Share, squares float64) {
	value.Budget = 1
	for device, load := range state.loads {
		share := load.Share()
		if share.Cmp(value) > 0 {
			value = share
		}
		level := max(share.Float(), float64(state.problem.Devices[device].Overhead)/float64(state.problem.Devices[device].Budget))
		squares += level * level
	}
	return value, squares
}
