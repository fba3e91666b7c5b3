package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// From any assignment to two devices corridors come to one of much less load, though steps
// have more states than they; the splitter is what it was.
func TestCorridors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	found := 0
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 61))
		problem := graphtest.NearChain(random, 40, 30, graph.Kind{Count: 2, Capacity: math.Inf(1)})
		call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
		split := newSplitter(ctx, call.Netlist, splitCells)
		find := call.newFinder(split, 0)
		place := scatter(call.Netlist, random)
		find.refresh(place)
		before, _ := find.largest()
		find.know(place, before, 0)
		order, cells := split.order, split.cells
		find.base = find.pool.pick(find.rng, false)
		find.corridor(ctx, find.pool[find.base])
		if split.beside != 0 || split.cells != cells || !reflect.DeepEqual(split.order, order) {
			t.Errorf("seed %d: the splitter divides otherwise now", seed)
		}
		_, load, err := problem.Score(call.Places(find.at))
		if err != nil || math.Abs(load-find.value) > 1e-9*load || load > before {
			t.Errorf("seed %d: %v is said of a load of %v (%v), before %v", seed, find.value, load, err, before)
		}
		if find.value < 0.8*before {
			found++
		}
	}
	if found < 3 {
		t.Errorf("%d of 4 are a fifth better", found)
	}
}
