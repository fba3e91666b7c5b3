package boundwindow

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestProved: what the flows prove is what was found, and nothing where a flow
// or a multiplier is not as it must be.
func TestProved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(20) {
		problem := graphtest.NearChain(rand.New(rand.NewPCG(seed, 42)), 40, 30, graph.Kind{Count: 4, Capacity: 800})
		before, after := make([][]int, 40), make([][]int, 40)
		for _, edge := range problem.Edges {
			before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
		}
		form := newForm(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after, 0)
		within := form.everywhere()
		limit := 80.0
		if !form.settle(&within, limit) {
			continue
		}
		dual := newDual(form, within, limit)
		dual.improve(ctx, 60)
		value, proved := dual.evaluate(ctx), dual.proved()
		if math.Abs(value-proved) > 1e-9*limit {
			t.Fatalf("seed %d: %v was found and %v is proved", seed, value, proved)
		}
		cut := dual.cuts[1]
		spoil := func(what string, change func(), back func()) {
			change()
			if got := dual.proved(); got >= proved-1e-9*limit && !math.IsInf(got, -1) {
				t.Errorf("seed %d: with %s %v is proved", seed, what, got)
			}
			back()
		}
		arc := cut.take[0] + 1
		spoil("an arc that carries more", func() { cut.Left[arc] += 1 << 30 }, func() { cut.Left[arc] -= 1 << 30 })
		spoil("a weight too many", func() { dual.weight[2]++ }, func() { dual.weight[2]-- })
		for wire, share := range dual.share {
			if len(share) > 1 && dual.wires[wire].Cost > 0 {
				spoil("shares of more than all", func() { share[0] += 0.5 }, func() { share[0] -= 0.5 })
				break
			}
		}
	}
}
