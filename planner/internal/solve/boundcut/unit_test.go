package boundcut

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestUnitBound: the bound is the largest, over the items, of the least load
// of a device that holds the item, in any company of items that fit beside it
// each for itself. That is its definition, and it is held to it exactly.
func TestUnitBound(t *testing.T) {
	t.Parallel()
	bounded, full := 0, 0
	for seed := range uint64(1200) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := graphtest.Whole(r)
		if seed%2 == 0 { // not all that fit beside an item fit beside each other, and company pays
			p.Kinds = p.Kinds[:1]
			p.Kinds[0].Capacity = float64(3 + r.IntN(4))
			for v := range p.Nodes {
				p.Nodes[v].Time, p.Nodes[v].Transfer, p.Nodes[v].Size = []float64{float64(r.IntN(3))}, float64(r.IntN(9)), float64(r.IntN(5))
			}
		}
		l := netlist.New(graph.NewInstance(p, p.Groups()))
		want := 0.
		for v := range l.Nodes {
			least := math.Inf(1)
			for k, n := range l.Count {
				if n == 0 || l.Size[v] > l.Capacity[k] {
					continue
				}
				if l.Size[v] == p.Kinds[k].Capacity {
					full++
				}
				graphtest.EachSet(len(l.Nodes), func(has func(int) bool) {
					for u := range l.Nodes {
						if has(u) && u != v && l.Size[u]+l.Size[v] > l.Capacity[k] {
							return
						}
					}
					if has(v) {
						least = min(least, graphtest.LoadOf(l, k, has))
					}
				})
			}
			if !math.IsInf(least, 1) {
				want = max(want, least)
			}
		}
		got, item := Unit(context.Background(), l)
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf("seed %d: the bound is %v (item %d), by every set %v", seed, got, item, want)
		}
		if !math.IsInf(p.Kinds[0].Capacity, 1) {
			bounded++
		}
	}
	if bounded < 300 || full < 50 {
		t.Errorf("%d problems with a capacity, %d items that fill one", bounded, full)
	}
}
