package partition

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
)

// branches is a graph of n nodes that read up to three earlier ones.
func branches(n, devices int) *Problem {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	p := &Problem{Kinds: []Kind{{Name: "gpu", Count: devices, Capacity: 12 * float64(n) / float64(devices)}}}
	for v := range n {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", v), Time: []float64{1 + 9*r.Float64()}, Size: 10, Transfer: 2 * r.Float64(), Group: v})
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
	p := &Problem{Kinds: []Kind{{Name: "gpu", Count: 2, Capacity: math.Inf(1)}}}
	for v, time := range []float64{3, 6, 3} {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", v), Time: []float64{time}, Group: v})
		if v > 0 {
			p.Edges = append(p.Edges, [2]int{v - 1, v})
		}
	}
	sol, err := Any(context.Background(), p, Settings{})
	if err != nil || sol.Largest != 6 || !sol.Optimal || sol.Stopped {
		t.Errorf("%+v, %v; want 6", sol, err)
	}
}

func TestAnyIsRepeatable(t *testing.T) {
	p := branches(17, 4)
	a, errA := Any(context.Background(), p, Settings{Seed: 3})
	b, errB := Any(context.Background(), p, Settings{Seed: 3})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !slices.Equal(a.Place, b.Place) || a.LowerBound != b.LowerBound || a.Stopped {
		t.Errorf("%+v and then %+v", a, b)
	}
}

func TestAnyStopsWithTheBestSoFar(t *testing.T) {
	p := branches(300, 6)
	progress := 0
	sol, err := Any(context.Background(), p, Settings{TimeLimit: time.Second, Progress: func(largest, bound float64) {
		progress++
		if bound > largest {
			t.Errorf("a bound of %v above %v", bound, largest)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, largest, err := p.Score(sol.Place)
	if err != nil || largest != sol.Largest || !sol.Stopped || sol.Optimal || progress < 2 || sol.LowerBound < 0.5*largest {
		t.Errorf("%v, scored %v, %v: bound %v, stopped %v, optimal %v, told %d times", sol.Largest, largest, err, sol.LowerBound, sol.Stopped, sol.Optimal, progress)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if sol, err = Any(ctx, p, Settings{}); err != nil || !sol.Stopped || sol.Optimal {
		t.Errorf("stopped before the start: %+v, %v", sol, err)
	}
	// Where one pass leaves a node over.
	p = &Problem{Kinds: []Kind{{Name: "gpu", Count: 2, Capacity: 6}}}
	for v, size := range []float64{2, 3, 2, 3, 2} {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", v), Time: []float64{1}, Size: size, Group: v})
	}
	if _, err := Any(ctx, p, Settings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before any answer: %v", err)
	}
}

func TestAnyErrors(t *testing.T) {
	three := &Problem{Kinds: []Kind{{Name: "gpu", Count: 2, Capacity: 10}}}
	for v := range 3 {
		three.Nodes = append(three.Nodes, Node{Name: fmt.Sprint("n", v), Time: []float64{1}, Size: 6, Group: v})
	}
	cycle := branches(3, 2)
	cycle.Edges = [][2]int{{0, 1}, {1, 2}, {2, 0}}
	for _, c := range []struct {
		name string
		p    *Problem
		want string
	}{
		{"three of 6 bytes on two of 10", three, "no placement is possible: the sizes sum to 18 bytes of 20, but not in parts that keep every capacity and run where they are: every assignment was tried"},
		{"cycle", cycle, "cycle"},
		{"no devices", &Problem{}, "no devices"},
	} {
		if _, err := Any(context.Background(), c.p, Settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnyOfWideGraphs(t *testing.T) {
	// Every node reads every earlier one: the frontier is too wide for all
	// wires, and the bounds must hold without them.
	p := &Problem{Kinds: []Kind{{Name: "gpu", Count: 2, Capacity: math.Inf(1)}}}
	for v := range 30 {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", v), Time: []float64{float64(1 + v%7)}, Transfer: 0.01, Group: v})
		for u := range v {
			p.Edges = append(p.Edges, [2]int{u, v})
		}
	}
	in := newInstance(p, p.groups())
	l := newNetlist(in)
	b := l.newSetBound(context.Background(), 100_000)
	b.improve(context.Background(), 60, 20)
	// The times sum to 115: one device has 58 at least, and 58 with 0.01 for
	// each of 29 wires at most is possible.
	if b.bound < 57.5 || b.bound > 58.29 {
		t.Errorf("a bound of %v, where 58.29 is possible", b.bound)
	}
}
