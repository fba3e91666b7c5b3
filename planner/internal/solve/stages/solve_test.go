package stages_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// line is a chain of nodes of one choice each.
func line(times ...float64) *stages.Problem {
	p := &stages.Problem{Devices: 2, Capacity: math.Inf(1)}
	for i, t := range times {
		p.Nodes = append(p.Nodes, stages.Node{Name: string(rune('a' + i)), Choices: []stages.Choice{{Time: t}}})
		if i > 0 {
			p.Edges = append(p.Edges, stages.Edge{From: i - 1, To: i})
		}
	}
	return p
}

// TestKnapsack: one stage, so that the choices alone decide. All swaps are
// about as good as each other, which is where rounding goes wrong.
func TestKnapsack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &stages.Problem{Devices: 1, Capacity: float64(rapid.IntRange(20, 200).Draw(t, "capacity"))}
		for range rapid.IntRange(1, 8).Draw(t, "nodes") {
			node := stages.Node{Name: "n", Choices: []stages.Choice{{Time: 10, Fixed: 30}}}
			for range rapid.IntRange(0, 2).Draw(t, "choices") {
				saved := rapid.IntRange(1, 30).Draw(t, "saved")
				more := saved + rapid.IntRange(-1, 1).Draw(t, "more")
				node.Choices = append(node.Choices, stages.Choice{Time: float64(10 + more), Fixed: float64(30 - saved)})
			}
			p.Nodes = append(p.Nodes, node)
		}
		want := stages.LeastOf(p)
		got, err := stages.Solve(context.Background(), p, stages.Settings{})
		var none *stages.InfeasibleError
		if errors.As(err, &none) {
			if !math.IsInf(want, 1) {
				t.Fatalf("%v; brute force finds %v", err, want)
			}
			return
		}
		if err != nil || !got.Optimal() || math.Abs(got.Value-want) > 1e-9 {
			t.Fatalf("%+v (%v), brute force %v", got, err, want)
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*stages.Problem)
		want   string
	}{
		{func(p *stages.Problem) { p.Nodes = nil; p.Edges = nil }, "no nodes"},
		{func(p *stages.Problem) { p.Devices = 0 }, "0 devices"},
		{func(p *stages.Problem) { p.Capacity = math.NaN() }, "a capacity of NaN"},
		{func(p *stages.Problem) { p.Nodes[1].Choices = nil }, `nodes[1] "b": no way to run it`},
		{func(p *stages.Problem) { p.Nodes[1].Choices[0].Time = math.Inf(1) }, `nodes[1] "b", choice 0: a time of +Inf`},
		{func(p *stages.Problem) { p.Nodes[1].Choices[0].Fixed = -1 }, `nodes[1] "b", choice 0: memory of 0 a micro-batch and -1`},
		{func(p *stages.Problem) { p.Edges[0].To = 7 }, "edges[0]: from 0 to 7"},
		{func(p *stages.Problem) { p.Edges[0].Send = math.NaN() }, "edges[0]: a time of NaN to send"},
		{func(p *stages.Problem) { p.Edges = append(p.Edges, stages.Edge{From: 2, To: 1}) }, `nodes read each other in a circle: "b" → "c" → "b"`},
	} {
		p := line(1, 2, 3)
		c.change(p)
		if _, err := stages.Solve(context.Background(), p, stages.Settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestScoreRefuses(t *testing.T) {
	t.Parallel()
	p := line(1, 2, 3)
	p.Capacity = 10
	p.Nodes[2].Choices[0].InFlight = 6
	for _, c := range []struct {
		stage, choice []int
		want          string
	}{
		{[]int{0, 0, 1}, []int{0, 0, 0}, ""},
		{[]int{0, 0}, []int{0, 0, 0}, "2 stages"},
		{[]int{0, 0, 2}, []int{0, 0, 0}, "stage 2 of 2 devices"},
		{[]int{1, 1, 1}, []int{0, 0, 0}, "stage 0 of 2 is empty"},
		{[]int{0, 0, 1}, []int{0, 1, 0}, `node "b": there is no choice 1`},
		{[]int{0, 1, 0}, []int{0, 0, 0}, `node "c" in stage 0 reads "b" in stage 1`},
	} {
		if _, _, err := p.Score(c.stage, c.choice); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v %v: %v, want %q", c.stage, c.choice, err, c.want)
		}
	}
	p.Edges = nil
	if _, _, err := p.Score([]int{1, 1, 0}, []int{0, 0, 0}); err == nil || !strings.Contains(err.Error(), "stage 0 holds 12 bytes and may hold 10") {
		t.Errorf("two micro-batches in flight: %v", err)
	}
}

// TestStopped: a wide graph, an end that has come already: the best pipeline
// of one order, and an honest bound.
func TestStopped(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 0))
	p := &stages.Problem{Devices: 4, Capacity: math.Inf(1)}
	for i := range 60 {
		p.Nodes = append(p.Nodes, stages.Node{Name: "n", Choices: []stages.Choice{{Time: 1 + rng.Float64()}}})
		if i > 0 && i%10 != 0 {
			p.Edges = append(p.Edges, stages.Edge{From: i - 1, To: i, Send: rng.Float64() / 4, Receive: rng.Float64() / 4})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := stages.Solve(ctx, p, stages.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, largest, err := p.Score(s.Stage, s.Choice); err != nil || largest != s.Value || !s.Early() || s.Optimal() {
		t.Errorf("%v (%v), said %v; stopped %v, optimal %v", largest, err, s.Value, s.Early(), s.Optimal())
	}
	if s.LowerBound <= 0 || s.LowerBound > s.Value || s.Bound == "" || s.Gap() <= 0 {
		t.Errorf("bound %v (%s) of %v", s.LowerBound, s.Bound, s.Value)
	}
	better, err := stages.Solve(context.Background(), p, stages.Settings{MaxSets: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if better.Early() || better.Value > s.Value || better.Sets > 2000 || better.LowerBound > better.Value {
		t.Errorf("%+v", better)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var values []float64
	s, err := stages.Solve(context.Background(), line(1, 2, 3, 4, 5, 6), stages.Settings{
		Progress: func(largest, bound float64) {
			if bound > largest {
				t.Errorf("bound %v above %v", bound, largest)
			}
			values = append(values, largest)
		},
	})
	if err != nil || s.Value != 11 || !s.Optimal() || len(values) == 0 || values[len(values)-1] != 11 {
		t.Errorf("%+v, %v, %v", s, err, values)
	}
}
