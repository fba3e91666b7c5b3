package assignmemory

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// search is one search for a map of any form.
type search struct {
	placement
	bounds
	ctx      context.Context
	progress func(chain.Progress)
	rng      *rand.Rand

	best  [][]int // counts per device and kind of the best map
	value chain.Share
	// squares is the sum of squared shares of best. Idle devices count with their overhead, so that
	// an idle device gains nothing.
	squares float64

	rounds  int // rounds of prove; 0: no limit
	targets int
	proved  bool // every share below value is infeasible
}

func newSearch(ctx context.Context, problem *assignment.Problem, limits instance.Limits) *search {
	all := problem.Moments()
	state := &search{placement: placement{problem: problem}, bounds: newBounds(problem, all), ctx: ctx, progress: limits.Progress, rng: rand.New(rand.NewPCG(1, 2))}
	if !problem.TooLarge {
		for device := range problem.Devices {
			state.loads = append(state.loads, problem.NewLoad(device))
		}
	}
	state.moments = problem.Tightest(all, state.average)
	return state
}

func (state *search) stopped() bool { return state.ctx.Err() != nil }

// closed reports that no map is better than the best.
func (state *search) closed() bool {
	return state.proved || state.unit.Cmp(state.value) >= 0 || state.lower() >= state.value.Float()*(1-rounding)
}

// rounding is the rounding error of a quotient of two whole numbers of bytes.
const rounding = 1e-15

// offer records a map if it is better than the best so far.
func (state *search) offer(counts [][]int) {
	state.load(counts)
	state.keep()
}

// keep records the current map if it is better than the best.
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
