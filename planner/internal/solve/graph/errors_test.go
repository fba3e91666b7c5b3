package graph_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// TestOrderable: edges that ascend in some order have no cycle. An edge against a path makes one.
func TestOrderable(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(93, 94))
	for i := range 500 {
		count := 2 + random.IntN(30)
		order := random.Perm(count)
		var edges [][2]int
		for range random.IntN(3 * count) {
			from := random.IntN(count - 1)
			edges = append(edges, [2]int{order[from], order[from+1+random.IntN(count-from-1)]})
		}
		if !graph.Orderable(count, edges) {
			t.Fatalf("%d: %v has no cycle", i, edges)
		}
		if len(edges) > 0 {
			some := edges[random.IntN(len(edges))]
			if graph.Orderable(count, append(edges, [2]int{some[1], some[0]})) {
				t.Fatalf("%d: %v and the edge %v turned round have one", i, edges, some)
			}
		}
	}
}
