package downset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"pgregory.net/rapid"
)

// path returns a chain of nodes with these times, on devices of one kind.
func path(devices int, times ...float64) *graph.Problem {
	p := &graph.Problem{Kinds: []graph.Kind{{Name: "GPU", Count: devices, Capacity: 10}}}
	for v, t := range times {
		p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprintf("n%d", v), Time: []float64{t}, Size: 1, Group: v})
		if v > 0 {
			p.Edges = append(p.Edges, [2]int{v - 1, v})
		}
	}
	return p
}

// parallel returns so many chains side by side.
func parallel(devices, chains, length int) *graph.Problem {
	p := path(devices)
	p.Kinds[0].Capacity = math.Inf(1)
	for c := range chains {
		for i := range length {
			v := len(p.Nodes)
			p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprintf("n%d", v), Time: []float64{1 + float64((7*v*v+c)%11)}, Transfer: 0.5, Group: v})
			if i > 0 {
				p.Edges = append(p.Edges, [2]int{v - 1, v})
			}
		}
	}
	return p
}

func TestContiguousPaysTransfersOnBothSides(t *testing.T) {
	p := path(2, 3, 4, 5)
	p.Nodes[0].Transfer, p.Nodes[1].Transfer = 1, 3
	// 3+1 and 1+4+5 make 10; 3+4+3 and 3+5 make 10; all on one device make 12.
	p.Nodes[1].Transfer = 2.5
	got := fixtures.Must(Solve(context.Background(), p, nil))(t)
	if got.Value != 9.5 || !got.Optimal() || got.Gap() > 1e-8 || got.Place[0] != got.Place[1] || got.Place[1] == got.Place[2] {
		t.Fatalf("%+v", got)
	}
}

func TestContiguousErrors(t *testing.T) {
	edit := func(p *graph.Problem, f func(p *graph.Problem)) *graph.Problem { f(p); return p }
	sized := func(second int, sizes ...float64) *graph.Problem {
		p := path(2, sizes...)
		for v, size := range sizes {
			p.Nodes[v].Size = size
		}
		p.Nodes[1].Group = second
		return p
	}
	for _, c := range []struct {
		name, want string
		p          *graph.Problem
		infeasible bool
	}{
		{"cycle", "the graph has a cycle: n1 → n2 → n3 → n1", edit(path(2, 1, 1, 1, 1), func(p *graph.Problem) { p.Edges = append(p.Edges, [2]int{3, 1}) }), false},
		{"no nodes", "no nodes", path(2), false},
		{"backward before forward", `the backward node "n0" feeds the forward node "n1"`, edit(path(2, 1, 1), func(p *graph.Problem) { p.Nodes[0].Backward = true }), false},
		{"a node too large", `node "n1", 11 bytes, fits no device: GPU holds 10`, edit(path(2, 1, 1), func(p *graph.Problem) { p.Nodes[1].Size = 11 }), true},
		{"a node that runs nowhere", `node "n1", 1 bytes, fits no device: cannot run on GPU`, edit(path(2, 1, 1), func(p *graph.Problem) { p.Nodes[1].Time[0] = math.Inf(1) }), true},
		{"a group too large", `nodes "n0", "n1", which must share a device, 12 bytes, fit no device: GPU holds 10`, sized(0, 6, 6), true},
		{"too much together", "the nodes' sizes sum to 21 bytes and the 2 devices hold 20 together", sized(1, 7, 7, 7), true},
		{"no two parts", "no contiguous placement is possible: the sizes sum to 17 bytes of 20, but no 2 contiguous parts keep every capacity", sized(1, 6, 5, 6), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Solve(context.Background(), c.p, nil)
			var infeasible *graph.InfeasibleError
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &infeasible) != c.infeasible {
				t.Fatalf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestContiguousStopsWithTheBestSoFar(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p := parallel(4, 12, 8)
	got, err := Solve(ctx, p, func(largest, _ float64) {
		if !math.IsInf(largest, 1) {
			stop()
		}
	})
	if err != nil || !got.Early() || got.Optimal() || !(got.LowerBound > 0 && got.LowerBound < got.Value) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, largest, err := p.Score(got.Place); err != nil || largest != got.Value {
		t.Fatal(largest, err)
	}
	if got, err = Solve(ctx, p, nil); err != nil || !got.Early() { // the context ended before the call
		t.Fatal(got, err)
	}
	if _, largest, err := p.Score(got.Place); err != nil || largest != got.Value {
		t.Fatal(largest, err)
	}
}

func TestContiguousIsRepeatable(t *testing.T) {
	p := parallel(3, 4, 6)
	first := fixtures.Must(Solve(context.Background(), p, nil))(t)
	second, err := Solve(context.Background(), p, nil)
	if err != nil || !slices.Equal(first.Place, second.Place) {
		t.Fatal(first, second, err)
	}
}

// With little memory the answer may be worse, but must respect the rules and the bound.
func TestContiguousWithinLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProblem(t)
		want := leastContiguous(p)
		got, err := solveWithin(context.Background(), p, nil, limits{few: 3, some: 6, most: 12, states: rapid.IntRange(5, 500).Draw(t, "states")})
		var infeasible *graph.InfeasibleError
		switch {
		case errors.As(err, &infeasible):
			if !math.IsInf(want, 1) {
				t.Fatalf("%v, and %v is possible", err, want)
			}
		case err == nil:
			if _, largest, err := p.Score(got.Place); err != nil || largest != got.Value {
				t.Fatal(largest, err)
			}
			if got.LowerBound > want*(1+1e-9) || got.Value < want*(1-1e-9) || (got.Optimal() && got.Value > want*(1+1e-8)) {
				t.Fatalf("%+v; the best is %v", got, want)
			}
		}
	})
}
