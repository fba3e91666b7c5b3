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
	problem := orders.Problem{MicroBatches: 1 + random.IntN(4), Caps: make([]int64, gpus)}
	joint := random.IntN(4) // none, some or all
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
		chunk := orders.Chunk{
			GPU: gpu % gpus, Forward: 1 + each(6), Input: 1 + each(6), Weight: each(6), ToInput: each(3), ToWeight: each(4), Between: each(2), Send: each(3), Back: each(3),
		}
		if joint == 3 || joint == 2 && random.IntN(2) == 0 {
			chunk.Joint, chunk.Input, chunk.Weight, chunk.Between = true, chunk.Input+chunk.Weight, 0, 0
		}
		problem.Chunks = append(problem.Chunks, chunk)
	}
	least := problem.LeastCaps()
	for gpu := range least {
		problem.Caps[gpu] = least[gpu] + each(int(least[gpu])+2)
	}
	return problem
}

// rowsOf lists all rows of a GPU within its cap.
func rowsOf(problem *orders.Problem, gpu, most int) (out [][]orders.Pass) {
	var row []orders.Pass
	open := make([][3]int64, len(problem.Chunks)) // micro-batches that use each ring
	var add func(deepest [][3]int64)
	add = func(deepest [][3]int64) {
		used := int64(0)
		for i, chunk := range problem.Chunks {
			used += deepest[i][0]*chunk.ToInput + deepest[i][1]*chunk.ToWeight + deepest[i][2]*chunk.Between
		}
		if used > problem.Caps[gpu] || len(out) > most {
			return
		}
		complete := true
		for i, chunk := range problem.Chunks {
			last := orders.Weight
			if chunk.Joint {
				last = orders.Input
			}
			for kind := orders.Forward; kind <= last && chunk.GPU == gpu; kind++ {
				pass := orders.Pass{Kind: kind, Chunk: i}
				ran, before := 0, problem.MicroBatches
				for _, one := range row {
					if one == pass {
						ran++
					}
					if one.Kind == kind-1 && one.Chunk == i {
						before--
					}
				}
				before = problem.MicroBatches - before
				if ran == problem.MicroBatches {
					continue
				}
				complete = false
				if kind > orders.Forward && before <= ran {
					continue
				}
				begins, ends := [...][3]int64{{1, 1, 0}, {0, 0, 1}, {}}[kind], [...][3]int64{{}, {1, 0, 0}, {0, 1, 1}}[kind]
				if chunk.Joint && kind == orders.Input {
					begins, ends = [3]int64{}, [3]int64{1, 1, 0}
				}
				was, deeper := open[i], slices.Clone(deepest)
				for ring := range begins {
					open[i][ring] += begins[ring]
					deeper[i][ring] = max(deeper[i][ring], open[i][ring])
					open[i][ring] -= ends[ring]
				}
				row = append(row, pass)
				add(deeper)
				row = row[:len(row)-1]
				open[i] = was
			}
		}
		if complete {
			out = append(out, slices.Clone(row))
		}
	}
	add(make([][3]int64, len(problem.Chunks)))
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
	if large < 60 || searched < 60 {
		t.Errorf("of %d problems, %d have 3 GPUs and 3 or 4 micro-batches, and %d needed a search", compared, large, searched)
	}
}
