package planner

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
	"github.com/devmap-dev/devmap/planner/internal/solve/orders"
)

// No order of any cuts and recomputed items is shorter than a bound, and the other derivation has room
// for it. Both could agree and be wrong.
func TestBoundsBelowRandomOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(977, 5))
	compared, near := 0, 0
	for compared < 300 {
		numbers := randomNumbers(random)
		best := shortestOrder(t, numbers)
		if math.IsInf(best, 1) {
			continue
		}
		compared++
		bound := numbers.Bound(math.Inf(1))
		if bound > best {
			t.Errorf("%+v: the bound is %v, and an order takes %v", numbers, bound, best)
		}
		if err := checkNumbers(numbers, best*(1+1e-6)); !errors.Is(err, errNumbers) {
			t.Errorf("%+v: an order takes %v, and the check has no room for it", numbers, best)
		}
		if bound > 0.95*best {
			near++
		}
	}
	if near < 60 {
		t.Errorf("%d of %d bounds are within 5 %% of the shortest order", near, compared)
	}
}

// randomNumbers returns a chain for at most 3 GPUs and 4 micro-batches, in whole numbers.
func randomNumbers(random *rand.Rand) *scheduletime.Numbers {
	gpus, each := 1+random.IntN(3), func(most int) float64 { return float64(random.IntN(most)) }
	out := &scheduletime.Numbers{Batches: 1 + random.IntN(4), Joint: random.IntN(2) == 0, Freed: 3, Extra: each(4)}
	switch random.IntN(3) {
	case 0:
		out.Loops = gpus > 1
	case 1:
		out.Vee = gpus > 1
	}
	out.Line = !out.Loops && !out.Vee
	runs := gpus
	if !out.Line {
		runs *= 2
	}
	total := 0.
	for range runs + random.IntN(2) {
		forward, input, saved := 1+each(5), 1+each(5), each(6)
		out.Forward, out.Input, out.Work = append(out.Forward, forward), append(out.Input, input), append(out.Work, forward+input+each(5))
		out.Saved, out.Made = append(out.Saved, saved), append(out.Made, max(0, saved-each(4)))
		out.Static, out.Scratch = append(out.Static, each(3)), append(out.Scratch, each(3))
		total += saved
	}
	for range gpus {
		out.Free = append(out.Free, 4+total*float64(random.IntN(2*out.Batches+2))/2/float64(gpus)+each(4))
	}
	return out
}

// shortestOrder returns the shortest step found of all cuts and recomputed items.
func shortestOrder(t *testing.T, numbers *scheduletime.Numbers) float64 {
	t.Helper()
	gpus, count, best := len(numbers.Free), len(numbers.Work), math.Inf(1)
	runs := gpus
	if !numbers.Line {
		runs *= 2
	}
	for again := range 1 << count {
		if !saves(numbers, again) {
			continue
		}
		var choose func(cuts []int)
		choose = func(cuts []int) {
			if len(cuts) == runs {
				problem, fits := orderNumbers(numbers, append(cuts, count), again)
				solution, err := orders.Solve(t.Context(), problem, orders.Settings{Effort: 500, Nodes: 1000})
				if fits && err == nil {
					best = min(best, float64(solution.Length))
				}
				return
			}
			for next := cuts[len(cuts)-1] + 1; next <= count-runs+len(cuts); next++ {
				choose(append(cuts[:len(cuts):len(cuts)], next))
			}
		}
		choose([]int{0})
	}
	return best
}

// saves reports a set of items that all keep less if they are recomputed.
func saves(numbers *scheduletime.Numbers, again int) bool {
	for item := range numbers.Work {
		if again>>item&1 == 1 && numbers.Made[item] >= numbers.Saved[item] {
			return false
		}
	}
	return true
}

// orderNumbers returns the chunks of cuts; false: a GPU has no room for what is there throughout.
func orderNumbers(numbers *scheduletime.Numbers, cuts []int, again int) (out orders.Problem, fits bool) {
	gpus, fits := len(numbers.Free), true
	out = orders.Problem{MicroBatches: numbers.Batches, Caps: make([]int64, gpus)}
	scratch := make([]float64, gpus)
	for gpu, free := range numbers.Free {
		out.Caps[gpu] = int64(free)
	}
	for run := range len(cuts) - 1 {
		chunk := orders.Chunk{GPU: run % gpus, Joint: numbers.Joint}
		if numbers.Vee && run >= gpus {
			chunk.GPU = 2*gpus - 1 - run
		}
		for item := cuts[run]; item < cuts[run+1]; item++ {
			saved, input := numbers.Saved[item], numbers.Input[item]
			weight := numbers.Work[item] - numbers.Forward[item] - input
			if again>>item&1 == 1 {
				saved, input = numbers.Made[item], input+numbers.Extra
			}
			if numbers.Joint {
				input, weight = input+weight, 0
			}
			chunk.Forward, chunk.Input, chunk.Weight = chunk.Forward+int64(numbers.Forward[item]), chunk.Input+int64(input), chunk.Weight+int64(weight)
			chunk.ToInput += int64(saved)
			out.Caps[chunk.GPU] -= int64(numbers.Static[item])
			scratch[chunk.GPU] = max(scratch[chunk.GPU], numbers.Scratch[item])
		}
		out.Chunks = append(out.Chunks, chunk)
	}
	for gpu := range out.Caps {
		out.Caps[gpu] -= int64(scratch[gpu])
		fits = fits && out.Caps[gpu] >= 0
	}
	return out, fits
}
