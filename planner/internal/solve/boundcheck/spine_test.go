package boundcheck_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// TestCheckSpine: no load that is possible passes, and many that are a little lower do.
func TestCheckSpine(t *testing.T) {
	t.Parallel()
	passed, tried := 0, 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 53))
		problem, _, _ := row(random)
		count := len(problem.Nodes)
		knots := []int{random.IntN(count), random.IntN(count)}
		if seed%2 == 0 && count > 4 { // all between two knots read the first, and some one before it
			problem.Edges, knots = [][2]int{{0, 1}, {count - 2, count - 1}}, nil
			for node := 2; node < count-2; node++ {
				problem.Edges = append(problem.Edges, [2]int{1, node}, [2]int{node, count - 2})
				if seed%4 == 0 {
					problem.Edges = append(problem.Edges, [2]int{0, node}, [2]int{node, count - 1})
				}
			}
		}
		for node := range problem.Nodes {
			for _, knot := range knots {
				if node != knot {
					problem.Edges = append(problem.Edges, [2]int{min(node, knot), max(node, knot)})
				}
			}
		}
		least := graphtest.LeastContiguous(problem)
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		tried++
		if boundcheck.CheckSpine(context.Background(), problem, least) == nil {
			t.Fatalf("seed %d: %v is said to be refuted, and is possible", seed, least)
		}
		if boundcheck.CheckSpine(context.Background(), problem, 0.97*least) == nil {
			passed++
		}
	}
	if tried < 300 || passed < 60 {
		t.Errorf("%d problems, %d of their loads refuted", tried, passed)
	}
}

// TestARowIsOfOneKind: what one kind of devices cannot do another may.
func TestARowIsOfOneKind(t *testing.T) {
	t.Parallel()
	many, one, none := graph.Kind{Count: 8, Capacity: math.Inf(1)}, graph.Kind{Count: 1, Capacity: math.Inf(1)}, graph.Kind{Capacity: math.Inf(1)}
	for name, kinds := range map[string][2]graph.Kind{"": {none, one}, "several": {many, one}, "no devices": {none, none}} {
		problem := graphtest.NearChain(rand.New(rand.NewPCG(1, 59)), 30, 0, kinds[:]...)
		total := 0.0
		for node := range problem.Nodes {
			total += problem.Nodes[node].Time[1]
		}
		err := boundcheck.CheckSpine(context.Background(), problem, total/2)
		if (name == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
