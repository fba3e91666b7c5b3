package anyplace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// branches is a graph of n nodes that read up to three earlier ones.
func branches(n, devices int) *graph.Problem {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	p := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: devices, Capacity: 12 * float64(n) / float64(devices)}}}
	for v := range n {
		p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprint("n", v), Time: []float64{1 + 9*r.Float64()}, Size: 10, Transfer: 2 * r.Float64(), Group: v})
		for u := max(0, v-3); u < v; u++ {
			if r.IntN(2) == 0 {
				p.Edges = append(p.Edges, [2]int{u, v})
			}
		}
	}
	return p
}

func TestAnyBeatsContiguous(t *testing.T) {
	// A device may hold the two ends of a chain and another its middle.
	p := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: math.Inf(1)}}}
	for v, time := range []float64{3, 6, 3} {
		p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprint("n", v), Time: []float64{time}, Group: v})
		if v > 0 {
			p.Edges = append(p.Edges, [2]int{v - 1, v})
		}
	}
	sol, err := Solve(context.Background(), p, graph.Settings{})
	if err != nil || sol.Value != 6 || !sol.Optimal() || sol.Early() {
		t.Errorf("%+v, %v; want 6", sol, err)
	}
}

func TestAnyIsRepeatable(t *testing.T) {
	p := branches(17, 4)
	a, errA := Solve(context.Background(), p, graph.Settings{Seed: 3})
	b, errB := Solve(context.Background(), p, graph.Settings{Seed: 3})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !slices.Equal(a.Place, b.Place) || a.LowerBound != b.LowerBound || a.Early() {
		t.Errorf("%+v and then %+v", a, b)
	}
}

func TestAnyStopsWithTheBestSoFar(t *testing.T) {
	p := branches(300, 6)
	progress := 0
	sol, err := Solve(context.Background(), p, graph.Settings{TimeLimit: time.Second, Progress: func(largest, bound float64) {
		progress++
		if bound > largest {
			t.Errorf("a bound of %v above %v", bound, largest)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, largest, err := p.Score(sol.Place)
	if err != nil || largest != sol.Value || !sol.Early() || sol.Optimal() || progress < 2 || sol.LowerBound < 0.5*largest {
		t.Errorf("%v, scored %v, %v: bound %v, stopped %v, optimal %v, told %d times", sol.Value, largest, err, sol.LowerBound, sol.Early(), sol.Optimal(), progress)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if sol, err = Solve(ctx, p, graph.Settings{}); err != nil || !sol.Early() || sol.Optimal() {
		t.Errorf("stopped before the start: %+v, %v", sol, err)
	}
	// Where one pass leaves a node over.
	p = &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: 6}}}
	for v, size := range []float64{2, 3, 2, 3, 2} {
		p.Nodes = append(p.Nodes, graph.Node{Name: fmt.Sprint("n", v), Time: []float64{1}, Size: size, Group: v})
	}
	if _, err := Solve(ctx, p, graph.Settings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before any answer: %v", err)
	}
}

func TestAnyErrors(t *testing.T) {
	three := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: 10}}}
	for v := range 3 {
		three.Nodes = append(three.Nodes, graph.Node{Name: fmt.Sprint("n", v), Time: []float64{1}, Size: 6, Group: v})
	}
	cycle := branches(3, 2)
	cycle.Edges = [][2]int{{0, 1}, {1, 2}, {2, 0}}
	for _, c := range []struct {
		name string
		p    *graph.Problem
		want string
	}{
		{"three of 6 bytes on two of 10", three, "no placement is possible: the sizes sum to 18 bytes of 20, but not in parts that keep every capacity and run where they are: every assignment was tried"},
		{"cycle", cycle, "cycle"},
		{"no devices", &graph.Problem{}, "no devices"},
	} {
		if _, err := Solve(context.Background(), c.p, graph.Settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
