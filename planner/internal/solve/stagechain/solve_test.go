package stagechain_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/stagechain"
)

// draw is a chain whose stages cost sums, shared by the replicas, and hold
// memory for each replica after them.
func draw(rng *rand.Rand) *stagechain.Problem {
	units := 1 + rng.IntN(6)
	time, memory, wire := []float64{0}, []float64{0}, make([]float64, units+1)
	for i := range units {
		time = append(time, time[i]+float64(rng.IntN(20)))
		memory = append(memory, memory[i]+float64(rng.IntN(5)))
		wire[i] = float64(rng.IntN(4))
	}
	wire[0] = 0
	room := float64(3 + rng.IntN(40))
	problem := &stagechain.Problem{Units: units, Devices: 1 + rng.IntN(6), Exactly: rng.IntN(3) == 0, Grows: true, Steady: float64(rng.IntN(5)), Fill: float64(rng.IntN(2))}
	if problem.Steady+problem.Fill == 0 {
		problem.Steady = 1
	}
	if rng.IntN(2) == 0 {
		problem.MostStages = 1 + rng.IntN(4)
	}
	for _, degree := range []stagechain.Degree{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}} {
		if rng.IntN(3) > 0 || len(problem.Degrees) == 0 {
			problem.Degrees = append(problem.Degrees, degree)
		}
	}
	sends := rng.IntN(2) == 0 // what is sent does not grow with the stage
	problem.Grows = !sends
	problem.Time = func(from, to, degree int, after stagechain.After) float64 {
		of := problem.Degrees[degree]
		inFlight := float64((after.Replicas+of.Data-1)/of.Data + 1)
		if inFlight*(memory[to]-memory[from])/float64(of.Tensor) > room {
			return math.Inf(1)
		}
		seconds := (time[to] - time[from]) / float64(of.Data) / (0.5 + 0.5*float64(of.Tensor))
		if sends {
			seconds += wire[from] + wire[to]
		}
		return seconds
	}
	return problem
}

// least tries every pipeline.
func least(problem *stagechain.Problem) float64 {
	best := math.Inf(1)
	var stages []stagechain.Stage
	var put func(to int)
	put = func(to int) {
		if to == 0 {
			ordered := make([]stagechain.Stage, len(stages))
			for i, stage := range stages {
				ordered[len(stages)-1-i] = stage
			}
			if value, err := problem.Score(ordered); err == nil {
				best = min(best, value)
			}
			return
		}
		for from := range to {
			for degree := range problem.Degrees {
				stages = append(stages, stagechain.Stage{From: from, To: to, Degree: degree})
				put(from)
				stages = stages[:len(stages)-1]
			}
		}
	}
	put(problem.Units)
	return best
}

// TestAgainstAll: the answer is that of trying everything, and is proved.
func TestAgainstAll(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 32))
	none := 0
	for i := range 800 {
		problem := draw(rng)
		want := least(problem)
		got, err := stagechain.Solve(context.Background(), problem)
		if math.IsInf(want, 1) {
			none++
			if !errors.Is(err, stagechain.ErrNone) {
				t.Fatalf("%d: %v, and there is no pipeline", i, err)
			}
			continue
		}
		if err != nil || !got.Optimal() || math.Abs(got.Value-want) > 1e-8*want {
			t.Fatalf("%d: %+v (%v), trying all finds %v of %+v", i, got, err, want, problem)
		}
	}
	if none < 20 || none > 500 {
		t.Errorf("%d problems of 800 have no answer", none)
	}
}

// TestStopped: the end of the time leaves an answer with an honest bound.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	problem := draw(rand.New(rand.NewPCG(1, 5)))
	cost, calls := problem.Time, 0
	problem.Steady, problem.Exactly, problem.MostStages = 3, false, 0
	problem.Time = func(from, to, degree int, after stagechain.After) float64 {
		calls++
		if calls > 40 {
			cancel()
		}
		return cost(from, to, degree, after)
	}
	got, err := stagechain.Solve(ctx, problem)
	if err == nil && (got.LowerBound > least(problem) || got.Value < least(problem)) {
		t.Errorf("%+v, the best is %v", got, least(problem))
	}
	cancel()
	if _, err := stagechain.Solve(ctx, problem); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before it began: %v", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*stagechain.Problem)
		want   string
	}{
		{func(p *stagechain.Problem) { p.Units = 0 }, "0 units"},
		{func(p *stagechain.Problem) { p.Devices = -1 }, "-1 devices"},
		{func(p *stagechain.Problem) { p.MostStages = -2 }, "at most -2 stages"},
		{func(p *stagechain.Problem) { p.Degrees = nil }, "no degree"},
		{func(p *stagechain.Problem) { p.Degrees[0].Tensor = 0 }, "degrees[0]: 1 replicas of 0"},
		{func(p *stagechain.Problem) { p.Steady = math.NaN() }, "a factor of NaN"},
		{func(p *stagechain.Problem) { p.Steady, p.Fill = 0, 0 }, "both factors are 0"},
		{func(p *stagechain.Problem) { p.Time = nil }, "no time"},
	} {
		problem := draw(rand.New(rand.NewPCG(1, 5)))
		problem.Degrees[0] = stagechain.Degree{Data: 1, Tensor: 1}
		c.change(problem)
		if _, err := stagechain.Solve(context.Background(), problem); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// BenchmarkLarge: 100 units on 64 devices, all powers of two.
func BenchmarkLarge(b *testing.B) {
	problem := &stagechain.Problem{Units: 100, Devices: 64, Grows: true, Steady: 31, Fill: 1}
	for data := 1; data <= 64; data *= 2 {
		for tensor := 1; tensor <= 8 && data*tensor <= 64; tensor *= 2 {
			problem.Degrees = append(problem.Degrees, stagechain.Degree{Data: data, Tensor: tensor})
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	time := make([]float64, problem.Units+1)
	for i := range problem.Units {
		time[i+1] = time[i] + 1 + rng.Float64()/10
	}
	problem.Time = func(from, to, degree int, after stagechain.After) float64 {
		of := problem.Degrees[degree]
		if float64(to-from)*float64(after.Replicas/of.Data+1)/float64(of.Tensor) > 200 {
			return math.Inf(1)
		}
		return (time[to]-time[from])/float64(of.Data)/math.Pow(float64(of.Tensor), 0.8) + 0.01*float64(of.Data-1)*float64(to-from)/float64(of.Data)
	}
	for b.Loop() {
		got, err := stagechain.Solve(context.Background(), problem)
		if err != nil || !got.Optimal() {
			b.Fatalf("%+v, %v", got, err)
		}
	}
}
