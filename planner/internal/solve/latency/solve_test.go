package latency_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
)

// drawn is a problem small enough to try every assignment of.
func drawn(random *rand.Rand) *latency.Problem {
	whole := func(most int) float64 { return float64(random.IntN(most)) }
	problem := &latency.Problem{Problem: &graph.Problem{Kinds: []graph.Kind{
		{Name: "accelerator", Count: 1 + random.IntN(2), Capacity: 2 + whole(12)},
		{Name: "CPU", Count: random.IntN(5), Capacity: math.Inf(1), FreeTransfers: true},
	}}, Calls: random.IntN(3)}
	if random.IntN(3) == 0 {
		problem.Kinds = append(problem.Kinds, graph.Kind{Name: "other", Count: 1, Capacity: 2 + whole(12)})
	}
	count := 1 + random.IntN(6)
	for node := range count {
		one := graph.Node{Size: whole(6), Transfer: whole(5), Group: node}
		for _, kind := range problem.Kinds {
			time := whole(9)
			if kind.FreeTransfers {
				time *= 4
			}
			if random.IntN(12) == 0 {
				time = math.Inf(1)
			}
			one.Time = append(one.Time, time)
		}
		if node > 0 && random.IntN(5) == 0 {
			one.Group = problem.Nodes[random.IntN(node)].Group
		}
		problem.Nodes = append(problem.Nodes, one)
		for before := range node {
			if random.IntN(5) < 2 {
				problem.Edges = append(problem.Edges, [2]int{before, node})
			}
		}
	}
	return problem
}

// least tries every assignment.
func least(problem *latency.Problem) float64 {
	calls := len(problem.Accelerators()) * max(1, problem.Calls)
	call, best := make([]int, len(problem.Nodes)), math.Inf(1)
	var try func(node int)
	try = func(node int) {
		if node == len(call) {
			if _, value, err := problem.Score(call); err == nil {
				best = min(best, value)
			}
			return
		}
		for call[node] = latency.OnCPU; call[node] < calls; call[node]++ {
			try(node + 1)
		}
	}
	try(0)
	return best
}

// TestSolveSmall: no assignment is below the bound, none is better than one
// that is said to be best, and mostly the best is found.
func TestSolveSmall(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(18, 4))
	solved, best, proved := 0, 0, 0
	for i := range 300 {
		problem := drawn(random)
		if math.Pow(float64(len(problem.Accelerators())*max(1, problem.Calls)+1), float64(len(problem.Nodes))) > 20_000 {
			continue
		}
		want := least(problem)
		solution, err := latency.Solve(t.Context(), problem, graph.Settings{TimeLimit: 20 * time.Millisecond})
		var none *graph.InfeasibleError
		if errors.As(err, &none) && (none.Unproved || math.IsInf(want, 1)) || errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v; %v is possible", i, err, want)
		}
		_, value, err := problem.Score(solution.Call)
		if err != nil || math.Abs(value-solution.Value) > 1e-9 || value < want-1e-9 || solution.LowerBound > want+1e-6 || solution.Optimal() && value > want+1e-6 {
			t.Fatalf("%d: %v, scored %v (%v), bound %v (%s); the least is %v\n%+v\n%v", i, solution.Value, value, err, solution.LowerBound, solution.Bound, want, problem.Problem, solution.Call)
		}
		solved++
		if value <= want+1e-6 {
			best++
		}
		if solution.Optimal() {
			proved++
		}
	}
	t.Logf("%d solved, %d the best, %d proved", solved, best, proved)
	if solved < 150 || best < solved*8/10 || proved < solved/2 {
		t.Errorf("%d solved, %d the best, %d proved", solved, best, proved)
	}
}

// diamond is a node that two read, which one reads.
func diamond(calls int) *latency.Problem {
	node := func(time float64) graph.Node {
		return graph.Node{Time: []float64{time, 10 * time}, Size: 1, Transfer: 1}
	}
	problem := &latency.Problem{Problem: &graph.Problem{
		Nodes: []graph.Node{node(1), node(2), node(3), node(4)},
		Edges: [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}},
		Kinds: []graph.Kind{{Count: 2, Capacity: 4}, {Count: 1, Capacity: math.Inf(1), FreeTransfers: true}},
	}, Calls: calls}
	for node := range problem.Nodes {
		problem.Nodes[node].Group = node
	}
	return problem
}

// TestScore: times by hand.
func TestScore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls int
		call  []int
		want  float64 // −1: an error
	}{
		"all in one call":                   {1, []int{0, 0, 0, 0}, 10},
		"all on CPUs, side by side":         {1, []int{-1, -1, -1, -1}, 10 + 30 + 40},
		"one branch apart":                  {1, []int{0, 0, 1, 0}, -1},
		"the last apart":                    {1, []int{0, 0, 0, 1}, (1 + 2 + 3 + 2) + (2 + 4)},
		"a branch on the CPUs":              {1, []int{0, 0, -1, 1}, (1 + 2 + 2) + 30 + (2 + 4)},
		"the first fetched once, sent once": {1, []int{-1, 0, 0, 0}, 10 + (1 + 9)},
		"a branch in each":                  {1, []int{-1, 0, 1, -1}, 10 + max(1+2+1, 1+3+1) + 40},
		"two calls of one":                  {2, []int{0, 0, 0, 1}, (1 + 2 + 3 + 2) + (2 + 4)},
		"two calls around another's":        {2, []int{0, 0, 2, 1}, (1 + 2 + 2) + (1 + 3 + 1) + (2 + 4)},
		"calls in the wrong order":          {2, []int{1, 1, 1, 0}, -1},
		"no such call":                      {1, []int{0, 0, 0, 2}, -1},
	} {
		_, got, err := diamond(c.calls).Score(c.call)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	small := diamond(1)
	small.Kinds[0].Capacity = 3
	if _, _, err := small.Score([]int{0, 0, 0, 0}); err == nil {
		t.Error("an accelerator holds more than it may")
	}
}

// TestSolveFaults: what cannot be asked, and what ends before it has begun.
func TestSolveFaults(t *testing.T) {
	t.Parallel()
	backward := diamond(1)
	backward.Nodes[3].Backward = true
	round := diamond(1)
	round.Edges = append(round.Edges, [2]int{3, 0})
	nowhere := diamond(1)
	nowhere.Kinds[0].Capacity, nowhere.Kinds[1].Count = 0.5, 0
	for name, problem := range map[string]*latency.Problem{"backward": backward, "cycle": round, "nowhere": nowhere} {
		if _, err := latency.Solve(t.Context(), problem, graph.Settings{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := latency.Solve(ctx, diamond(1), graph.Settings{}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSolveTight: where little is left over and no CPU takes the rest, an
// assignment is found where brute force finds one, now and then by parts alone.
func TestSolveTight(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	parts := 0
	for i := range 60 {
		problem := &latency.Problem{Problem: &graph.Problem{Kinds: []graph.Kind{{Count: 3, Capacity: 10}}}}
		total, nodes := 0., 6+random.IntN(2)
		for node := range nodes {
			size := float64(1 + random.IntN(6))
			total += size
			problem.Nodes = append(problem.Nodes, graph.Node{Time: []float64{1}, Size: size, Transfer: 1, Group: node})
			if node > 0 && random.IntN(3) > 0 {
				problem.Edges = append(problem.Edges, [2]int{random.IntN(node), node})
			}
		}
		problem.Kinds[0].Capacity = math.Ceil(total/3) + float64(random.IntN(2))
		want := least(problem)
		solution, err := latency.Solve(t.Context(), problem, graph.Settings{TimeLimit: 50 * time.Millisecond})
		var none *graph.InfeasibleError
		switch {
		case errors.Is(err, context.DeadlineExceeded): // on a busy machine
		case errors.As(err, &none) && math.IsInf(want, 1):
		case err != nil || math.IsInf(want, 1):
			t.Fatalf("%d: %v; %v is possible", i, err, want)
		case strings.HasPrefix(solution.Method, "contiguous parts"):
			parts++
		}
	}
	t.Logf("%d by parts", parts)
	if parts == 0 {
		t.Error("none was found by parts: the draw is one-sided")
	}
}

// TestSolveLarge: a graph of thousands of nodes on thousands of accelerators is
// answered, and the limit kept.
func TestSolveLarge(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	const nodes = 20_000
	problem := &latency.Problem{Problem: &graph.Problem{Kinds: []graph.Kind{
		{Count: 1 << 16, Capacity: 500}, {Count: 1, Capacity: math.Inf(1), FreeTransfers: true},
	}}}
	for node := range nodes {
		time := random.Float64()
		problem.Nodes = append(problem.Nodes, graph.Node{Time: []float64{time, 10 * time}, Size: 1, Transfer: random.Float64(), Group: node})
		for range min(node, 2) {
			if from := node - 1 - random.IntN(min(node, 30)); from != node {
				problem.Edges = append(problem.Edges, [2]int{from, node})
			}
		}
	}
	const limit = time.Second
	begin := time.Now()
	solution, err := latency.Solve(t.Context(), problem, graph.Settings{TimeLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, bound %v (%s), %s, after %v", solution.Value, solution.LowerBound, solution.Bound, solution.Method, time.Since(begin))
	if time.Since(begin) > 10*limit || !(solution.LowerBound > 0) {
		t.Errorf("%v after %v, bound %v", solution.Value, time.Since(begin), solution.LowerBound)
	}
}
