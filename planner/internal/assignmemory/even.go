package assignmemory

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// even lowers the sum of squared shares without raising the largest share.
func (state *search) even() {
	state.load(state.best)
	for improved := true; improved && !state.stopped(); {
		improved = false
		for _, from := range state.loads {
			for _, to := range state.loads {
				if from != to && !state.stopped() && state.evenOut(from, to) {
					improved = true
				}
			}
		}
	}
	state.keep()
}

// evenOut makes the move between two devices that lowers the squares most.
func (state *search) evenOut(from, to *assignment.Load) bool {
	var best move
	now := state.squaresOf(from, to)
	least := now * (1 - instance.Tolerance)
	state.moves(from, to, func(change *move) bool {
		change.apply(1)
		if squares := state.squaresOf(from, to); squares < least {
			least, best = squares, *change
		}
		change.apply(-1)
		return !state.stopped() && (best.from == nil || !state.manyKinds())
	})
	if best.from == nil {
		return false
	}
	best.apply(1)
	return true
}

// squaresOf returns the sum of the devices' squared shares; +Inf if a share is above the value.
func (state *search) squaresOf(loads ...*assignment.Load) float64 {
	sum := 0.
	for _, load := range loads {
		share := load.Share()
		if share.Cmp(state.value) > 0 {
			return math.Inf(1)
		}
		sum += state.square(load, share)
	}
	return sum
}
