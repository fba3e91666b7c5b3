package boundwindow_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestTrials: no bound of the trials is above the least largest load, and in the
// end it is that.
func TestTrials(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(700) {
		problem, before, after, least := drawn(rand.New(rand.NewPCG(seed, 43)))
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		tree := boundwindow.NewTree(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after, 1.5*least)
		trials, found := boundwindow.NewTrials(tree), math.Inf(1)
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
			t.Fatalf("seed %d: the trials end with %v, and %v is possible", seed, trials.Bound(), least)
		}
		tried += trials.Tried
	}
	if tried < 100 {
		t.Errorf("%d branches of trials: the test tries little", tried)
	}
}

// TestLowLoads: loads below the answer are refuted by a few branches of their own.
// Of 400 branches those of trials come to 29.90, the whole tree's to 22.07.
func TestLowLoads(t *testing.T) {
	t.Parallel()
	line := dags.Line{Mode: "contiguous", Kind: "experts", Nodes: 180, Devices: 16, Capacity: 1.05, Transfers: 0.8, Seed: 4_200_001}
	problem, err := line.Anew()
	if err != nil {
		t.Fatal(err)
	}
	before, after := make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
	}
	const answer = 30.874
	trials := boundwindow.NewTrials(boundwindow.NewTree(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after, answer))
	trials.Found = func([]int) {}
	for range 400 {
		trials.Step(context.Background())
	}
	if bound := trials.Bound(); bound < 0.95*answer || bound > answer {
		t.Errorf("a bound of %v under an answer of %v", bound, answer)
	}
}
