package highs_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/highs"
)

// TestAssign holds package assign to the assignment model, on devices alike
// and not. The value is a float: 1e-6 is HiGHS's tolerance.
func TestAssign(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	for trial := range 10 {
		k := 2 + random.IntN(2)
		p := assign.Problem{Sizes: make([]int64, 4+random.IntN(5)), Budgets: make([]int64, k), Fixed: make([]int64, k)}
		for i := range p.Sizes {
			p.Sizes[i] = 1 + random.Int64N(100)
		}
		m := &highs.Model{}
		share := m.Column(highs.Column{Cost: 1, Upper: inf})
		once := make([][]highs.Term, len(p.Sizes))
		for d := range k {
			p.Budgets[d] = 7
			if trial%2 == 1 {
				p.Budgets[d], p.Fixed[d] = 5+random.Int64N(20), random.Int64N(50)
			}
			load := []highs.Term{{Column: share, Coefficient: -float64(p.Budgets[d])}}
			for i, size := range p.Sizes {
				x := m.Column(highs.Column{Upper: 1, Integer: true})
				once[i] = append(once[i], highs.Term{Column: x, Coefficient: 1})
				load = append(load, highs.Term{Column: x, Coefficient: float64(size)})
			}
			m.Row(-inf, -float64(p.Fixed[d]), load...)
		}
		for _, terms := range once {
			m.Row(1, 1, terms...)
		}
		r := solve(t, m, highs.Options{})
		s, err := assign.Solve(t.Context(), p, assign.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != highs.Optimal || !s.Optimal() || !near(r.Objective, s.Value) {
			t.Errorf("%+v\nHiGHS %s %v, devmap %v", p, r.Status, r.Objective, s.Value)
		}
	}
}

// TestPartition holds a model of graph.Problem's transfers to its Score
// over all assignments.
func TestPartition(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 3))
	for range 4 {
		const n, k = 5, 3
		p := &graph.Problem{Kinds: []graph.Kind{{Count: k, Capacity: inf}}}
		for v := range n {
			p.Nodes = append(p.Nodes, graph.Node{
				Time: []float64{float64(1 + random.IntN(20))}, Transfer: float64(random.IntN(6)), Group: v,
			})
			for u := range v {
				if random.IntN(2) == 0 {
					p.Edges = append(p.Edges, [2]int{u, v})
				}
			}
		}
		best := inf
		for code := range 243 { // k to the n
			place := make([]int, n)
			for v := range place {
				place[v], code = code%k, code/k
			}
			_, largest, err := p.Score(place)
			if err != nil {
				t.Fatal(err)
			}
			best = min(best, largest)
		}
		if r := solve(t, transfers(p), highs.Options{}); r.Status != highs.Optimal || !near(r.Objective, best) {
			t.Errorf("HiGHS %s %v, of all assignments the best is %v", r.Status, r.Objective, best)
		}
	}
}

// transfers is the model: x[v][d] says that v is on d, sent and read that v's
// output leaves d or is read there from elsewhere.
func transfers(p *graph.Problem) *highs.Model {
	m := &highs.Model{}
	most := m.Column(highs.Column{Cost: 1, Upper: inf})
	once := make([][]highs.Term, len(p.Nodes))
	for range p.Devices() {
		load := []highs.Term{{Column: most, Coefficient: -1}}
		at, sent, read := make([]int, len(p.Nodes)), make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
		for v, node := range p.Nodes {
			at[v] = m.Column(highs.Column{Upper: 1, Integer: true})
			sent[v], read[v] = m.Column(highs.Column{Upper: 1}), m.Column(highs.Column{Upper: 1})
			once[v] = append(once[v], highs.Term{Column: at[v], Coefficient: 1})
			load = append(load, highs.Term{Column: at[v], Coefficient: node.Time[0]},
				highs.Term{Column: sent[v], Coefficient: node.Transfer}, highs.Term{Column: read[v], Coefficient: node.Transfer})
		}
		for _, e := range p.Edges {
			from, to := e[0], e[1]
			m.Row(0, inf, highs.Term{Column: sent[from], Coefficient: 1}, highs.Term{Column: at[from], Coefficient: -1}, highs.Term{Column: at[to], Coefficient: 1})
			m.Row(0, inf, highs.Term{Column: read[from], Coefficient: 1}, highs.Term{Column: at[to], Coefficient: -1}, highs.Term{Column: at[from], Coefficient: 1})
		}
		m.Row(-inf, 0, load...)
	}
	for _, terms := range once {
		m.Row(1, 1, terms...)
	}
	return m
}
