package stages

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/lattice"
)

// TestAskIsABound: what a question did not reach, no pipeline has, nor any up
// to the next time that it names.
func TestAskIsABound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(93, 94))
	refused, exact := 0, 0
	for i := range 1500 {
		p := drawStages(rng)
		w, err := newWeb(p)
		if err != nil {
			t.Fatal(err)
		}
		s := newSearch(p, w, lattice.Enumerate(context.Background(), w.Graph, lattice.Everything, math.MaxInt))
		best := LeastOf(p)
		for range 4 {
			limit := float64(rng.IntN(40)) / 2
			q := s.ask(context.Background(), limit, p.Devices)
			switch {
			case q.reached() && !q.open && best > limit:
				t.Fatalf("%d: a pipeline within %v is said to be there, and the best takes %v", i, limit, best)
			case !q.reached() && (best <= limit || q.next > best || q.next <= limit):
				t.Fatalf("%d: nothing is said to be within %v, the next at %v, and the best takes %v", i, limit, q.next, best)
			case !q.reached():
				refused++
				if q.next == best {
					exact++
				}
			}
		}
		q := s.ask(context.Background(), math.Inf(1), p.Devices) // by the memory alone
		if q.reached() == math.IsInf(best, 1) {
			t.Fatalf("%d: whether some pipeline fits is said to be %t, and the best takes %v", i, q.reached(), best)
		}
		if !q.reached() && q.nextMemory > p.Capacity {
			more := *p
			more.Capacity = q.nextMemory - 0.5
			if least := LeastOf(&more); !math.IsInf(least, 1) {
				t.Fatalf("%d: nothing is said to fit under %v B, and %v B are enough", i, q.nextMemory, more.Capacity)
			}
		}
		v := &solver{problem: p, network: w}
		v.Value = math.Inf(1)
		v.bounds()
		if v.LowerBound > best {
			t.Fatalf("%d: %s says that nothing is below %v, and the best takes %v", i, v.Bound, v.LowerBound, best)
		}
	}
	if refused < 1000 || exact < 200 {
		t.Errorf("%d refused, in %d the next is the best", refused, exact)
	}
}

// drawStages is a problem small enough to try out, in whole numbers; half of
// them without transfers, and half without a capacity.
func drawStages(rng *rand.Rand) *Problem {
	p := &Problem{Devices: 1 + rng.IntN(3), Capacity: math.Inf(1)}
	if rng.IntN(2) == 0 {
		p.Capacity = float64(3 + rng.IntN(10+30*rng.IntN(2)))
	}
	free := rng.IntN(2) == 0
	for v := range 1 + rng.IntN(5) {
		node := Node{Name: fmt.Sprint(v)}
		for range 1 + rng.IntN(2) {
			node.Choices = append(node.Choices, Choice{Time: float64(rng.IntN(9)), InFlight: float64(rng.IntN(6)), Fixed: float64(rng.IntN(6))})
		}
		p.Nodes = append(p.Nodes, node)
		for u := range v {
			if rng.IntN(2) == 0 {
				e := Edge{From: u, To: v}
				if !free {
					e.Send, e.Receive = float64(rng.IntN(4)), float64(rng.IntN(4))
				}
				p.Edges = append(p.Edges, e)
			}
		}
	}
	return p
}

// LeastOf tries every stage and choice of every node.
func LeastOf(p *Problem) float64 {
	best := math.Inf(1)
	stage, choice := make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	var put func(v int)
	put = func(v int) {
		if v == len(p.Nodes) {
			if _, largest, err := p.Score(stage, choice); err == nil {
				best = min(best, largest)
			}
			return
		}
		for stage[v] = range p.Devices {
			for choice[v] = range p.Nodes[v].Choices {
				put(v + 1)
			}
		}
	}
	put(0)
	return best
}
