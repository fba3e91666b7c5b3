package boundprice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestPrices: no set that a device can take within a load is worth more than
// what the walk over the frontier says, at any prices, with all wires or with
// those left out that make it wide; and without joined cells that is exact.
func TestPrices(t *testing.T) {
	t.Parallel()
	exact, wide := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 22))
		p := graphtest.Whole(r)
		l := netlist.New(graph.NewInstance(p, p.Groups()))
		used := make([]bool, len(l.Wires))
		for w := range used {
			used[w] = true
		}
		order := l.ThinOrder(context.Background(), used)
		f := l.LayOut(context.Background(), order, used, 3)
		for f == nil { // as Netlist.NewFrontier does
			wide++
			l.DropWires(order, used)
			f = l.LayOut(context.Background(), order, used, 3)
		}
		y := make([]float64, len(l.Nodes))
		for i := range y {
			y[i] = float64(r.IntN(9) - 1)
		}
		limit := float64(1 + r.IntN(30))
		cells := 1 + r.IntN(400)
		front := newPricer(f, l.Time[0], cells).price(context.Background(), y, limit)
		// What all devices can take within the least load at which they can
		// take everything: no less is needed for any assignment.
		b := &SetBound{Netlist: l, kinds: []int{0}, fronts: [][]label{front}}
		total := float64(r.IntN(30))
		reach := limit
		for i := len(front) - 1; i >= 0 && float64(l.Count[0])*front[i].worth >= total; i-- {
			reach = front[i].load
		}
		if got := b.refuted(total, limit); math.Abs(got-reach) > 1e-6*(1+reach) {
			t.Fatalf("seed %d: %d devices of %v take %v at a load of %v, said to be %v", seed, l.Count[0], front, total, reach, got)
		}
		kept := true
		for _, u := range used {
			kept = kept && u
		}
		for load := 0.; load <= limit; load++ {
			most := 0.
			graphtest.EachSet(len(l.Nodes), func(has func(int) bool) {
				worth := 0.
				for i := range y {
					if has(i) {
						worth += y[i]
					}
				}
				if p := graphtest.LoadOf(l, 0, has); p <= load && !l.Free[0] {
					most = max(most, worth)
				}
			})
			got := front[within(front, load)].worth
			if got < most-1e-9 {
				t.Fatalf("seed %d: a set within a load of %v is worth %v, and %v is said to be the most", seed, load, most, got)
			}
			if kept && float64(cells) > 3*limit && got == most {
				exact++
			} else if kept && float64(cells) > 3*limit {
				t.Fatalf("seed %d: the most within %v is %v, said to be %v", seed, load, most, got)
			}
		}
	}
	if exact < 1000 || wide < 100 {
		t.Errorf("%d loads exact, wires left out %d times", exact, wide)
	}
}

func TestAnyOfWideGraphs(t *testing.T) {
	// Every node reads every earlier one: the frontier is too wide for all
	// wires, and the bounds must hold without them.
	p := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: math.Inf(1)}}}
	for v := range 30 {
		p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprint("n", v), Time: []float64{float64(1 + v%7)}, Transfer: 0.01, Group: v})
		for u := range v {
			p.Edges = append(p.Edges, [2]int{u, v})
		}
	}
	in := graph.NewInstance(p, p.Groups())
	l := netlist.New(in)
	b := New(context.Background(), l, 100_000)
	b.Improve(context.Background(), 60, 20)
	// The times sum to 115: one device has 58 at least, and 58 with 0.01 for
	// each of 29 wires at most is possible.
	if b.Bound < 57.5 || b.Bound > 58.29 {
		t.Errorf("a bound of %v, where 58.29 is possible", b.Bound)
	}
}
