package orders

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// The farthest that a pass moves, and the parts of the length that the first and last moves may add.
const (
	farthest = 5
	warm     = 5e-3
	cold     = 1e-4
)

// byMoves moves single passes within their rows at random, so many times (simulated annealing). Half
// of the mean end of all passes counts with the length: a shorter order is then nearer.
func (solution *Solution) byMoves(ctx context.Context, problem *Problem, times int) {
	random, order, ahead := rand.New(rand.NewPCG(1, 3)), solution.clone(), cmp.Or(problem.Ahead, math.MaxInt)
	half := int64(2 * problem.passes())
	now, warmth, cooler := solution.Length+solution.ends/half, warm*float64(solution.Length), math.Pow(cold/warm, 1/float64(times))
	for count := 0; count < times && ctx.Err() == nil; count++ {
		warmth *= cooler
		row, far := order[random.IntN(len(order))], 2+random.IntN(farthest)
		if len(row) < far {
			continue
		}
		first := random.IntN(len(row) - far + 1)
		part, later := row[first:first+far], random.IntN(2) == 0
		turn(part, later)
		if got, err := problem.replay(order, ahead); err != nil || float64(got.Length+got.ends/half-now) > warmth*random.ExpFloat64() {
			turn(part, !later)
		} else if now = got.Length + got.ends/half; got.Length < solution.Length {
			solution.take(problem, order)
		}
	}
}

// turn moves the first pass of a part of a row to its end, or the last one to its start.
func turn(part []Pass, later bool) {
	slices.Reverse(part)
	if later {
		slices.Reverse(part[:len(part)-1])
	} else {
		slices.Reverse(part[1:])
	}
}
