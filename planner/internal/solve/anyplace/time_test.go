package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// A large problem has an answer, though the context is over before it begins
// and the table of an exact search would take more memory than there is.
func TestLargeNearChainsAreAnswered(t *testing.T) {
	over, stop := context.WithCancel(context.Background())
	stop()
	r := rand.New(rand.NewPCG(1, 2))
	p := graphtest.NearChain(r, 8_000, 30, graph.Kind{Count: 4000, Capacity: 5000}, graph.Kind{Count: 2, Capacity: math.Inf(1)})
	for name, solve := range map[string]func(context.Context, *graph.Problem, graph.Settings) (*graph.Solution, error){"contiguous": downset.Solve, "any": Solve} {
		s, err := solve(over, p, graph.Settings{})
		total := 0.0
		for i := range p.Nodes {
			total += min(p.Nodes[i].Time[0], p.Nodes[i].Time[1])
		}
		if got := graphtest.Scored(t, p, s, err); got > 8*total/4002 || !s.Early() {
			t.Errorf("%s: %v, stopped %v; the average is %v", name, got, s.Early(), total/4002)
		}
	}
}

// Solve starts from the contiguous answer, so that it is never worse, whenever
// it is stopped.
func TestAnyIsNeverWorseThanContiguous(t *testing.T) {
	over, stop := context.WithCancel(context.Background())
	stop()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		capacity := math.Inf(1)
		if seed%2 == 0 {
			capacity = 1500
		}
		kinds := []graph.Kind{{Count: 2 + r.IntN(6), Capacity: capacity}, {Count: r.IntN(3), Capacity: math.Inf(1), FreeTransfers: seed%3 == 0}}
		kinds[1].Count = max(kinds[1].Count, 1)
		nodes := 10 + r.IntN(60)
		p := graphtest.NearChain(r, nodes, r.IntN(nodes), kinds...)
		for _, how := range []struct {
			name string
			ctx  context.Context //nolint:containedctx // a row
			set  graph.Settings
		}{
			{"over before it begins", over, graph.Settings{}},
			{"a limit of 1 ms", context.Background(), graph.Settings{TimeLimit: time.Millisecond}},
		} {
			// What a limit of a millisecond leaves of a search depends on the machine: what
			// there is before any search is there always.
			contiguous, err := downset.Solve(over, p, graph.Settings{})
			want := graphtest.Scored(t, p, contiguous, err)
			anywhere, err := Solve(how.ctx, p, how.set)
			if got := graphtest.Scored(t, p, anywhere, err); got > want {
				t.Errorf("seed %d, %s: any %v (%s), contiguous %v (%s)", seed, how.name, got, anywhere.Method, want, contiguous.Method)
			}
		}
	}
}
