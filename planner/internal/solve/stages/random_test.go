package stages_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// randomProblem returns a problem in whole numbers, small enough to try all plans.
func randomProblem(rng *rand.Rand) *stages.Problem {
	p := &stages.Problem{
		Devices: 1 + rng.IntN(6), Replicas: 1 + rng.IntN(6), Data: []int{1, 2, 3}[:1+rng.IntN(3)], Tensor: []int{1, 2}[:1+rng.IntN(4)/2],
		Capacity: math.Inf(1), Resync: float64(rng.IntN(3)) / 2,
	}
	if rng.IntN(4) > 0 {
		p.Capacity = float64(4 + rng.IntN(10+30*rng.IntN(2)))
	}
	wired := rng.IntN(2) == 0
	for v := range 1 + rng.IntN(4) {
		node := stages.Node{Name: fmt.Sprint(v)}
		for range p.Tensor {
			var choices []stages.Choice
			for range (rng.IntN(7) + 2) / 3 {
				choices = append(choices, stages.Choice{
					Time: float64(rng.IntN(20)), Weights: float64(rng.IntN(4)), InFlight: float64(rng.IntN(5)), Fixed: float64(rng.IntN(6)),
				})
			}
			node.Choices = append(node.Choices, choices)
		}
		if len(node.Choices[0]) == 0 && (len(node.Choices) == 1 || len(node.Choices[1]) == 0) {
			node.Choices[0] = []stages.Choice{{Time: 3, Weights: 1, InFlight: 1, Fixed: 1}}
		}
		p.Nodes = append(p.Nodes, node)
		for u := range v {
			if rng.IntN(2) == 0 {
				edge := stages.Edge{From: u, To: v, Send: make([]float64, len(p.Tensor)), Receive: make([]float64, len(p.Tensor))}
				for i := range p.Tensor {
					if wired {
						edge.Send[i], edge.Receive[i] = float64(rng.IntN(5)), float64(rng.IntN(5))
					}
				}
				p.Edges = append(p.Edges, edge)
			}
		}
	}
	return p
}

// least returns the least time of all plans, by trying all.
func least(p *stages.Problem) float64 {
	best := math.Inf(1)
	plan := &stages.Plan{Stage: make([]int, len(p.Nodes)), Choice: make([]int, len(p.Nodes))}
	var choose func(node int)
	choose = func(node int) {
		if node == len(p.Nodes) {
			if _, largest, err := p.Score(plan); err == nil {
				best = min(best, largest)
			}
			return
		}
		for plan.Stage[node] = range plan.Stages {
			for plan.Choice[node] = range 2 {
				choose(node + 1)
			}
		}
	}
	var cut func(devices int)
	cut = func(devices int) {
		choose(0)
		for _, data := range p.Data {
			for _, tensor := range p.Tensor {
				if used := data * tensor; used <= devices && len(plan.Stages) < len(p.Nodes) {
					plan.Stages = append(plan.Stages, stages.Degrees{Data: data, Tensor: tensor})
					cut(devices - used)
					plan.Stages = plan.Stages[:len(plan.Stages)-1]
				}
			}
		}
	}
	cut(p.Devices)
	return best
}

// TestAgainstAll: the answer equals the best of all plans and is proved. If no plan fits, that is
// proved.
func TestAgainstAll(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(41, 42))
	none := 0
	for i := range 1000 {
		p := randomProblem(rng)
		want := least(p)
		got, err := stages.Solve(context.Background(), p, nil)
		var no *stages.InfeasibleError
		if errors.As(err, &no) {
			none++
			if !math.IsInf(want, 1) || !no.Proved {
				t.Fatalf("%d: %v (proved %t), and trying all finds %v", i, err, no.Proved, want)
			}
			explained(t, p, no)
			continue
		}
		if err != nil || !got.Optimal() || math.Abs(got.Value-want) > 1e-8*want {
			t.Fatalf("%d: %+v (%v), trying all finds %v of %+v", i, got, err, want, p)
		}
	}
	if none < 50 || none > 600 {
		t.Errorf("%d problems of 1000 have no answer", none)
	}
}

// explained checks that the capacity in an error is enough, and that less is not.
func explained(t *testing.T, p *stages.Problem, no *stages.InfeasibleError) {
	t.Helper()
	other := *p
	other.Capacity = no.Least
	if no.Least > 0 && math.IsInf(least(&other), 1) {
		t.Fatalf("%v: and nothing fits that of %+v", no, p)
	}
	if other.Capacity = no.Least * (1 - 1e-6); no.Least > 0 && !math.IsInf(least(&other), 1) {
		t.Fatalf("%v: and less is enough of %+v", no, p)
	}
	if other.Capacity, other.Devices = p.Capacity, no.Enough; no.Enough > 0 && no.Enough < 7 && math.IsInf(least(&other), 1) {
		t.Fatalf("%v: and they are not enough of %+v", no, p)
	}
}

// TestStopped: if the context has ended, Solve returns an answer of the first order with a valid
// bound, or reports that there was no time.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := stages.Solve(ctx, randomProblem(rand.New(rand.NewPCG(1, 2))), nil); err != nil || got.Optimal() != (got.LowerBound == got.Value) {
		t.Errorf("stopped before it began: %+v, %v", got, err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		p := randomProblem(rng)
		ctx, cancel := context.WithCancel(context.Background())
		got, err := stages.Solve(ctx, p, func(float64, float64) { cancel() })
		if err == nil && (got.LowerBound > least(p)+1e-9 || got.Value < least(p)-1e-9) {
			t.Errorf("%+v, trying all finds %v", got, least(p))
		}
		cancel()
	}
}
