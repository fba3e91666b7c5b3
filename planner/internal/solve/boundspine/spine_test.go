package boundspine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundspine"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// drawn is a problem of up to eight nodes on two or three devices of one kind, with
// up to three nodes that all before lead to and that lead to all behind, and now and
// then all between two of these read the first, or one further away.
func drawn(random *rand.Rand) *graph.Problem {
	problem := graphtest.Whole(random)
	problem.Kinds = problem.Kinds[:1]
	problem.Kinds[0].Count = 2 + random.IntN(2)
	count := len(problem.Nodes)
	edge := func(from, to int) {
		if from != to {
			problem.Edges = append(problem.Edges, [2]int{min(from, to), max(from, to)})
		}
	}
	var knots []int
	for range random.IntN(4) {
		knots = append(knots, random.IntN(count))
	}
	if fan := random.IntN(2) == 0; fan && count > 4 {
		problem.Edges, knots = [][2]int{{0, 1}, {count - 2, count - 1}}, nil
		more := random.IntN(8)
		for node := 2; node < count-2; node++ {
			edge(1, node)
			edge(node, count-2)
			if more&1 > 0 {
				edge(0, node)
			}
			if more&2 > 0 {
				edge(node, count-1)
			}
		}
		if more&4 > 0 {
			edge(1, count-2)
		}
	}
	for node := range problem.Nodes {
		of := &problem.Nodes[node]
		of.Group, of.Backward, of.Time = node, false, of.Time[:1]
		if math.IsInf(of.Time[0], 1) {
			of.Time[0] = 3
		}
		for _, knot := range knots {
			edge(node, knot)
		}
	}
	return problem
}

func spineOf(problem *graph.Problem, largest float64) *boundspine.Spine {
	before, after := neighbours(problem)
	nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
	return boundspine.New(context.Background(), nets, before, after, largest)
}

func neighbours(problem *graph.Problem) (before, after [][]int) {
	before, after = make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
	}
	return before, after
}

// rows visits all placements that keep order and capacities, on no more devices than
// there are nodes.
func rows(problem *graph.Problem, visit func(stage []int, largest float64)) {
	stage := make([]int, len(problem.Nodes))
	last := min(problem.Kinds[0].Count, len(stage)) - 1
	for {
		inOrder := true
		for _, edge := range problem.Edges {
			inOrder = inOrder && stage[edge[0]] <= stage[edge[1]]
		}
		if inOrder {
			if _, largest, err := problem.Score(stage); err == nil {
				visit(stage, largest)
			}
		}
		i := 0
		for ; i < len(stage) && stage[i] == last; i++ {
			stage[i] = 0
		}
		if i == len(stage) {
			return
		}
		stage[i]++
	}
}

// TestEveryPlacement: no placement has a load that is refuted, or stages outside of
// the windows within its load; what is found is in order.
func TestEveryPlacement(t *testing.T) {
	t.Parallel()
	tried, near, narrow, found := 0, 0, 0, 0
	for seed := range uint64(1500) {
		problem := drawn(rand.New(rand.NewPCG(seed, 47)))
		least := math.Inf(1)
		rows(problem, func(_ []int, largest float64) { least = min(least, largest) })
		spine := spineOf(problem, 2*least)
		if math.IsInf(least, 1) || least == 0 || spine == nil {
			continue
		}
		tried++
		bound := spine.Bound(context.Background(), 0, 2*least)
		if bound > least*(1+1e-9) {
			t.Fatalf("seed %d: %v is refuted, and %v is possible", seed, bound, least)
		}
		near += one(bound > 0.95*least)
		narrow += one(inWindows(t, seed, problem, spine, 1.3*least))
		found += one(inOrder(t, seed, problem, spine.Answer(context.Background(), 1.3*least)))
	}
	if tried < 200 || near < 50 || narrow < 100 || found < 100 {
		t.Errorf("%d problems, %d bounds within a twentieth, %d with windows, %d answers", tried, near, narrow, found)
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// inWindows holds all placements within a limit to the windows; it says whether
// these tell anything.
func inWindows(t *testing.T, seed uint64, problem *graph.Problem, spine *boundspine.Spine, limit float64) bool {
	t.Helper()
	t.Helper()
	narrow := false
	first, last, ok := spine.Windows(context.Background(), limit)
	rows(problem, func(stage []int, largest float64) {
		for item, at := range stage {
			if largest <= limit && (!ok || at < first[item] || at > last[item]) {
				t.Fatalf("seed %d: %v has a load of %v, windows within %v are %v to %v", seed, stage, largest, limit, first, last)
			}
		}
	})
	for item := range first {
		narrow = narrow || first[item] > 0 || last[item] < min(problem.Kinds[0].Count, len(first))-1
	}
	return narrow
}

// inOrder holds an answer, if there is one, to the order.
func inOrder(t *testing.T, seed uint64, problem *graph.Problem, stage []int) bool {
	t.Helper()
	if stage == nil {
		return false
	}
	for _, edge := range problem.Edges {
		if stage[edge[0]] > stage[edge[1]] {
			t.Fatalf("seed %d: %v breaks the order", seed, stage)
		}
	}
	return true
}

// TestExperts: where all wires are sure, a bound and an answer are near the least
// load, which the search of all down-sets knows.
func TestExperts(t *testing.T) {
	t.Parallel()
	for seed, line := range []dags.Line{
		{Nodes: 50, Devices: 3, Width: 6, Capacity: 1.1, Transfers: 0.3},
		{Nodes: 70, Devices: 4, Width: 8, Capacity: 1.05, Transfers: 0.8},
		{Nodes: 80, Devices: 6, Width: 8, Capacity: 1.2, Transfers: 0.02},
		{Nodes: 90, Devices: 8, Width: 6, Capacity: 1.35, Transfers: 0.3},
		{Nodes: 60, Devices: 6, Width: 10, Capacity: 1.1, Transfers: 0.1},
		{Nodes: 120, Devices: 5, Width: 10, Capacity: 1.5, Transfers: 0.8},
	} {
		line.Mode, line.Kind, line.Seed = "contiguous", "experts", uint64(7_800_001+seed)
		problem, err := line.Anew()
		if err != nil {
			t.Fatal(err)
		}
		best, err := downset.Solve(context.Background(), problem, graph.Settings{})
		if err != nil || best.LowerBound < best.Value*(1-1e-8) {
			t.Fatalf("%s: not proved: %v", line.Name(), err)
		}
		spine := spineOf(problem, 2*best.Value)
		bound := spine.Bound(context.Background(), 0, 2*best.Value)
		if bound > best.Value || bound < 0.93*best.Value {
			t.Errorf("%s: a bound of %v, the least load is %v", line.Name(), bound, best.Value)
		}
		if boundcheck.CheckSpine(context.Background(), problem, best.Value) == nil {
			t.Errorf("%s: the check refutes the least load", line.Name())
		}
		if err := boundcheck.CheckSpine(context.Background(), problem, 0.99*bound); err != nil {
			t.Errorf("%s: the check of less than the bound: %v", line.Name(), err)
		}
		limit := 1.1 * best.Value
		stage := spine.Answer(context.Background(), limit)
		if _, largest, err := problem.Score(stage); err != nil || largest > limit*(1+1e-9) {
			t.Errorf("%s: an answer within %v has a load of %v: %v", line.Name(), limit, largest, err)
		}
	}
}
