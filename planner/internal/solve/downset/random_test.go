package downset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"pgregory.net/rapid"
)

// randomProblem returns a small problem with groups and a backward pass. Some nodes cannot run
// everywhere, capacities bind, and some devices have free transfers.
func randomProblem(t *rapid.T) *graph.Problem {
	// Exhaustive search tries devices^nodes assignments.
	shape := rapid.SampledFrom([][2]int{{8, 3}, {4, 6}}).Draw(t, "most nodes, kinds")
	n := rapid.IntRange(1, shape[0]).Draw(t, "nodes")
	p := &graph.Problem{}
	for k := range rapid.IntRange(1, shape[1]).Draw(t, "kinds") {
		capacity := math.Inf(1)
		if rapid.Bool().Draw(t, "capped") {
			capacity = float64(rapid.IntRange(1, 12).Draw(t, "capacity"))
		}
		p.Kinds = append(p.Kinds, graph.Kind{
			Name: fmt.Sprintf("kind%d", k), Count: rapid.IntRange(0, 2).Draw(t, "count"),
			Capacity: capacity, FreeTransfers: rapid.Bool().Draw(t, "free"),
		})
	}
	p.Kinds[0].Count++
	forward := rapid.IntRange(1, n).Draw(t, "forward")
	for v := range n {
		node := graph.Node{Name: fmt.Sprintf("n%d", v), Backward: v >= forward}
		longest := rapid.SampledFrom([]int{0, 9, 9}).Draw(t, "longest")
		for range p.Kinds {
			time := float64(rapid.IntRange(0, longest).Draw(t, "time"))
			if rapid.IntRange(0, 9).Draw(t, "runs") == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time)
		}
		node.Size = float64(rapid.IntRange(0, 4).Draw(t, "size"))
		node.Transfer = float64(rapid.IntRange(0, 5).Draw(t, "transfer")) / 2
		node.Group = rapid.IntRange(0, n).Draw(t, "group")
		p.Nodes = append(p.Nodes, node)
		for u := range v {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				p.Edges = append(p.Edges, [2]int{u, v})
			}
		}
	}
	return p
}

func TestContiguousEqualsExhaustive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProblem(t)
		want := leastContiguous(p)
		got, err := Solve(context.Background(), p, nil)
		if math.IsInf(want, 1) {
			var infeasible *graph.InfeasibleError
			if !errors.As(err, &infeasible) {
				t.Fatalf("nothing is possible, and the answer is %+v, %v", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Value-want) > 1e-9 || !got.Optimal() || got.LowerBound > want || got.LowerBound < want*(1-1e-8) {
			t.Fatalf("largest load %v (bound %v, optimal %v), want %v", got.Value, got.LowerBound, got.Optimal(), want)
		}
		forward := make(map[int]bool)
		for _, n := range p.Nodes {
			forward[n.Group] = forward[n.Group] || !n.Backward
		}
		if _, largest, err := p.Score(got.Place); err != nil || largest != got.Value || !inSomeOrder(p, got.Place, forward) {
			t.Fatalf("%v scores %v, %v", got.Place, largest, err)
		}
	})
}
