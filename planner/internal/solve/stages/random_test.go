package stages_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// small draws a problem that brute can answer. Whole numbers keep sums exact.
func small(t *rapid.T) *stages.Problem {
	amount := func(most int, name string) float64 { return float64(rapid.IntRange(0, most).Draw(t, name)) }
	p := &stages.Problem{Devices: rapid.IntRange(1, 3).Draw(t, "devices"), Capacity: math.Inf(1)}
	if rapid.Bool().Draw(t, "bounded") {
		p.Capacity = float64(rapid.IntRange(5, 60).Draw(t, "capacity"))
	}
	n := rapid.IntRange(1, 5).Draw(t, "nodes")
	names := rapid.Permutation([]int{0, 1, 2, 3, 4}[:n]).Draw(t, "order")
	for range n {
		var node stages.Node
		node.Name = "n"
		for range rapid.IntRange(1, 3).Draw(t, "choices") {
			node.Choices = append(node.Choices, stages.Choice{Time: amount(9, "time"), InFlight: amount(6, "in flight"), Fixed: amount(6, "fixed")})
		}
		p.Nodes = append(p.Nodes, node)
	}
	free := rapid.Bool().Draw(t, "free edges")
	for i := range n {
		for j := range i {
			if rapid.Bool().Draw(t, "edge") {
				e := stages.Edge{From: names[j], To: names[i]}
				if !free {
					e.Send, e.Receive = amount(4, "send"), amount(4, "receive")
				}
				p.Edges = append(p.Edges, e)
			}
		}
	}
	return p
}

func TestSolveAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := small(t)
		want := stages.LeastOf(p)
		got, err := stages.Solve(context.Background(), p, stages.Settings{})
		var none *stages.InfeasibleError
		switch {
		case errors.As(err, &none):
			if !math.IsInf(want, 1) {
				t.Fatalf("infeasible (%v); brute force finds %v", err, want)
			}
			checkNone(t, p, none)
		case err != nil:
			t.Fatal(err)
		case math.IsInf(want, 1):
			t.Fatalf("%v; brute force finds nothing", got.Value)
		default:
			check(t, p, got)
			if !got.Optimal() || math.Abs(got.Value-want) > 1e-9 {
				t.Fatalf("%v (optimal %v), brute force %v", got.Value, got.Optimal(), want)
			}
		}
	})
}

// check re-scores a solution.
func check(t *rapid.T, p *stages.Problem, s *stages.Solution) {
	_, largest, err := p.Score(s.Stage, s.Choice)
	if err != nil || largest != s.Value || s.LowerBound > largest*(1+1e-9) {
		t.Fatalf("score %v (%v), largest %v, bound %v", largest, err, s.Value, s.LowerBound)
	}
}

// checkNone tries what the error says would do, and what it says would not.
func checkNone(t *rapid.T, p *stages.Problem, e *stages.InfeasibleError) {
	if !e.Proved {
		t.Fatal("not proved")
	}
	more := *p
	more.Capacity = e.Least * (1 + 1e-9)
	if math.IsInf(stages.LeastOf(&more), 1) {
		t.Fatalf("nothing fits %v bytes on %d devices either", e.Least, e.Devices)
	}
	more.Capacity = e.Least * (1 - 1e-6)
	if !math.IsInf(stages.LeastOf(&more), 1) {
		t.Fatalf("less than %v bytes do on %d devices", e.Least, e.Devices)
	}
	more = *p
	more.Devices = len(p.Nodes)
	if e.Enough > 0 {
		more.Devices = e.Enough
	}
	if more.Devices <= 4 && math.IsInf(stages.LeastOf(&more), 1) != (e.Enough == 0) {
		t.Fatalf("enough %d; brute force on %d devices: %v", e.Enough, more.Devices, stages.LeastOf(&more))
	}
	if e.Enough == 0 && !(e.Needs > e.Capacity && e.Node != "" && e.InFlight > 0) {
		t.Fatalf("%+v", e)
	}
}

// TestBandIsHonest holds the search that leaves down-sets out to its word.
func TestBandIsHonest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := small(t)
		want := stages.LeastOf(p)
		got, err := stages.Solve(context.Background(), p, stages.Settings{MaxSets: rapid.IntRange(1, 8).Draw(t, "sets")})
		var none *stages.InfeasibleError
		switch {
		case errors.As(err, &none):
			if none.Proved && !math.IsInf(want, 1) {
				t.Fatalf("%v; brute force finds %v", err, want)
			}
		case err != nil:
			t.Fatal(err)
		default:
			check(t, p, got)
			if got.LowerBound > want*(1+1e-9) || got.Value < want-1e-9 || got.Optimal() && got.Value > want+1e-9 {
				t.Fatalf("%v ≥ %v (optimal %v), brute force %v", got.Value, got.LowerBound, got.Optimal(), want)
			}
		}
	})
}
