package certificate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/orders"
)

// randomOrders returns a random pipeline of at most 3 GPUs and 4 micro-batches.
func randomOrders(random *rand.Rand) orders.Problem {
	gpus := 1 + random.IntN(3)
	problem := orders.Problem{MicroBatches: 1 + random.IntN(4), Joint: random.IntN(3) == 0, Caps: make([]int64, gpus)}
	chunks := gpus
	if random.IntN(3) == 0 {
		chunks += random.IntN(gpus + 1)
	}
	each := func(most int) int64 { return int64(random.IntN(most)) }
	for i := range chunks {
		gpu := i
		if i >= gpus {
			gpu = chunks - 1 - i
		}
		problem.Chunks = append(problem.Chunks, orders.Chunk{
			GPU: gpu % gpus, Forward: 1 + each(6), Input: 1 + each(6), Weight: each(6), ToInput: each(3), ToWeight: each(4), Between: each(2), Send: each(3), Back: each(3),
		})
	}
	least := problem.LeastCaps()
	for gpu := range least {
		problem.Caps[gpu] = least[gpu] + each(int(least[gpu])*2+1)
	}
	return problem
}

// rowsOf lists all rows of a GPU within its cap.
func rowsOf(problem *orders.Problem, gpu, most int) (out [][]orders.Pass) {
	ran := map[orders.Pass]int{}
	var row []orders.Pass
	last := orders.Weight
	if problem.Joint {
		last = orders.Input
	}
	var add func(used int64)
	add = func(used int64) {
		if len(out) > most {
			return
		}
		complete := true
		for i, chunk := range problem.Chunks {
			if chunk.GPU != gpu {
				continue
			}
			for kind := orders.Forward; kind <= last; kind++ {
				pass := orders.Pass{Kind: kind, Chunk: i}
				if ran[pass] == problem.MicroBatches {
					continue
				}
				complete = false
				if kind > orders.Forward && ran[orders.Pass{Kind: kind - 1, Chunk: i}] <= ran[pass] {
					continue
				}
				more, less := int64(0), int64(0)
				switch kind {
				case orders.Forward:
					more = chunk.ToInput + chunk.ToWeight
				case orders.Input:
					more, less = chunk.Between, chunk.ToInput
				default:
					less = chunk.ToWeight + chunk.Between
				}
				if problem.Joint && kind == orders.Input {
					less = chunk.ToInput + chunk.ToWeight + chunk.Between
				}
				if used+more > problem.Caps[gpu] {
					continue
				}
				ran[pass]++
				row = append(row, pass)
				add(used + more - less)
				row = row[:len(row)-1]
				ran[pass]--
			}
		}
		if complete {
			out = append(out, slices.Clone(row))
		}
	}
	add(0)
	return out
}

// exhaustive returns the shortest length of all orders; 0 if they are too many.
func exhaustive(problem *orders.Problem, most int) int64 {
	all, count := make([][][]orders.Pass, len(problem.Caps)), 1
	for gpu := range all {
		all[gpu] = rowsOf(problem, gpu, most)
		if count *= max(1, len(all[gpu])); count > most {
			return 0
		}
	}
	best := int64(math.MaxInt64)
	order := make(orders.Order, len(all))
	var choose func(gpu int)
	choose = func(gpu int) {
		if gpu == len(all) {
			if got, err := problem.Replay(order); err == nil {
				best = min(best, got.Length)
			}
			return
		}
		for _, row := range all[gpu] {
			order[gpu] = row
			choose(gpu + 1)
		}
	}
	choose(0)
	return best
}

func TestOrdersAgainstExhaustiveSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 1))
	compared, large, searched := 0, 0, 0
	for compared < 600 {
		problem := randomOrders(random)
		best := exhaustive(&problem, 20_000)
		if best == 0 {
			continue
		}
		compared++
		name := fmt.Sprintf("%d: %+v", compared, problem)
		solution, err := orders.Solve(t.Context(), problem, orders.Settings{Effort: 30_000})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := CheckOrder(&problem, solution); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if bound := problem.Bound(); bound.Value > best {
			t.Errorf("%s: the bound is %d (%s), and an order takes %d", name, bound.Value, bound.Why, best)
		}
		if !solution.Complete || solution.Length != best {
			t.Errorf("%s: complete %v, length %d, the shortest is %d", name, solution.Complete, solution.Length, best)
		}
		if len(problem.Caps) == 3 && problem.MicroBatches >= 3 {
			large++
		}
		if solution.Why == orders.BySearch {
			searched++
		}
	}
	if large < 60 || searched < 100 {
		t.Errorf("of %d problems, %d have 3 GPUs and 3 or 4 micro-batches, and %d needed a search", compared, large, searched)
	}
}
