package boundspine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestTreeWithin: a tree that begins with the spine's windows loses no placement.
func TestTreeWithin(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(400) {
		problem := drawn(rand.New(rand.NewPCG(seed, 59)))
		least := math.Inf(1)
		rows(problem, func(_ []int, largest float64) { least = min(least, largest) })
		spine := spineOf(problem, 2*least)
		before, after := neighbours(problem)
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		tree := boundwindow.NewTree(nets, before, after, 1.3*least)
		if math.IsInf(least, 1) || least == 0 || spine == nil || tree == nil {
			continue
		}
		tried++
		trials, found := boundwindow.NewTrials(tree), math.Inf(1)
		tree.Windows = spine.Windows
		tree.Found = func(stage []int) {
			if _, largest, err := problem.Score(stage); err == nil && largest < found {
				found = largest
				trials.Lower(found * (1 - 1e-9))
			}
		}
		for !trials.Done() && trials.Bound() < found*(1-1e-8) {
			trials.Step(context.Background())
			if trials.Bound() > least*(1+1e-9) {
				t.Fatalf("seed %d: nothing is below %v, and %v is possible", seed, trials.Bound(), least)
			}
		}
		if math.Abs(trials.Bound()-least) > 1e-7*least {
			t.Fatalf("seed %d: the tree ends with %v, and %v is possible", seed, trials.Bound(), least)
		}
	}
	if tried < 100 {
		t.Errorf("%d problems", tried)
	}
}
