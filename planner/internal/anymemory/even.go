package anymemory

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// even lowers the sum of squared shares without raising the largest.
func (a *search) even() {
	a.load(a.best)
	for improved := true; improved && !a.stopped(); {
		improved = false
		for _, from := range a.loads {
			for _, to := range a.loads {
				if from != to && !a.stopped() && a.evenOut(from, to) {
					improved = true
				}
			}
		}
	}
	a.keep()
}

// evenOut makes the move between two devices that lowers the squares most.
func (a *search) evenOut(from, to *anywhere.Load) bool {
	var best move
	now := a.squaresOf(from, to)
	least := now * (1 - instance.Tolerance)
	a.moves(from, to, func(v *move) bool {
		v.apply(1)
		if s := a.squaresOf(from, to); s < least {
			least, best = s, *v
		}
		v.apply(-1)
		return !a.stopped() && (best.from == nil || !a.manyKinds())
	})
	if best.from == nil {
		return false
	}
	best.apply(1)
	return true
}

// squaresOf is the sum of two devices' squared shares; +Inf past the value.
func (a *search) squaresOf(loads ...*anywhere.Load) float64 {
	sum := 0.
	for _, l := range loads {
		s := l.Share()
		if s.Cmp(a.value) > 0 {
			return math.Inf(1)
		}
		h := &a.problem.Devices[l.Device]
		f := max(s.Float(), float64(h.Overhead)/float64(h.Budget))
		sum += f * f
	}
	return sum
}
