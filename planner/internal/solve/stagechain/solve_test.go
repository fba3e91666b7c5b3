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

// randomChain returns a chain whose stages cost sums, divided by their devices. They use memory for
// each stage after them.
func randomChain(rng *rand.Rand) *stagechain.Problem {
	units := 1 + rng.IntN(6)
	time, memory, wire := []float64{0}, []float64{0}, make([]float64, units+1)
	for i := range units {
		time = append(time, time[i]+float64(rng.IntN(20)))
		memory = append(memory, memory[i]+float64(rng.IntN(5)))
		wire[i] = float64(rng.IntN(4))
	}
	wire[0] = 0
	capacity := float64(3 + rng.IntN(40))
	problem := &stagechain.Problem{Units: units, Devices: 1 + rng.IntN(6), MostStages: 6, Steady: float64(rng.IntN(5)), Fill: float64(rng.IntN(2))}
	if problem.Steady+problem.Fill == 0 {
		problem.Steady = 1
	}
	if rng.IntN(2) == 0 {
		problem.MostStages = 1 + rng.IntN(4)
	}
	for _, size := range []int{1, 2, 3, 4, 6} {
		if rng.IntN(3) > 0 || len(problem.Sizes) == 0 {
			problem.Sizes = append(problem.Sizes, size)
		}
	}
	sends := rng.IntN(2) == 0   // stages pay for transfers, which do not grow with their size
	deepens := rng.IntN(2) == 0 // a stage costs more with more stages after it
	problem.Time = func(from, to, size, behind int) float64 {
		devices := float64(problem.Sizes[size])
		if float64(behind+1)*(memory[to]-memory[from])/devices > capacity {
			return math.Inf(1)
		}
		seconds := (time[to] - time[from]) / (0.5 + 0.5*devices)
		if deepens {
			seconds += float64(behind) * (memory[to] - memory[from])
		}
		if sends {
			seconds += wire[from] + wire[to]
		}
		return seconds
	}
	return problem
}

// least returns the least time of all pipelines, by trying all.
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
			for size := range problem.Sizes {
				stages = append(stages, stagechain.Stage{From: from, To: to, Size: size})
				put(from)
				stages = stages[:len(stages)-1]
			}
		}
	}
	put(problem.Units)
	return best
}

// TestAgainstAll: the answer equals the best of all pipelines, and is proved.
func TestAgainstAll(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 32))
	none := 0
	for i := range 800 {
		problem := randomChain(rng)
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

// TestHundreds: 65 units on 200 devices, in stages of many sizes that use more memory with more
// stages after them. Time is called a few times per range, not for every pipeline that ends in it.
func TestHundreds(t *testing.T) {
	t.Parallel()
	const units = 65
	problem := &stagechain.Problem{Units: units, Devices: 200, MostStages: 48, Steady: 1}
	for size := 1; size <= 32; size++ {
		if 32%size == 0 || size%3 == 0 {
			problem.Sizes = append(problem.Sizes, size)
		}
	}
	calls := 0
	problem.Time = func(from, to, size, behind int) float64 {
		calls++
		if to == units {
			behind += 3
		}
		return float64(1000*(to-from)*(behind+4)) / math.Pow(float64(problem.Sizes[size]), 0.9)
	}
	got, err := stagechain.Solve(t.Context(), problem)
	stretches := units * (units + 1) / 2 * len(problem.Sizes)
	if err != nil || !got.Optimal() || calls > 24*stretches {
		t.Errorf("%+v, %v after %d calls for %d stretches", got, err, calls, stretches)
	}
	below := *problem
	below.Time = func(from, to, size, behind int) float64 {
		if time := problem.Time(from, to, size, behind); time < got.Value {
			return time
		}
		return math.Inf(1)
	}
	if _, err := stagechain.Solve(t.Context(), &below); !errors.Is(err, stagechain.ErrNone) {
		t.Errorf("%v: there is a pipeline below the optimum", err)
	}
}

// TestStopped: a search that is stopped returns an answer with a valid bound.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	problem := randomChain(rand.New(rand.NewPCG(1, 5)))
	cost, calls := problem.Time, 0
	problem.Steady = 3
	problem.Time = func(from, to, size, behind int) float64 {
		calls++
		if calls > 40 {
			cancel()
		}
		return cost(from, to, size, behind)
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
		{func(p *stagechain.Problem) { p.MostStages = 0 }, "at most 0 stages"},
		{func(p *stagechain.Problem) { p.Sizes = nil }, "no size"},
		{func(p *stagechain.Problem) { p.Sizes = []int{2, 2} }, "sizes[1]: 2 devices"},
		{func(p *stagechain.Problem) { p.Steady = math.NaN() }, "a factor of NaN"},
		{func(p *stagechain.Problem) { p.Steady, p.Fill = 0, 0 }, "both factors are 0"},
		{func(p *stagechain.Problem) { p.Time = nil }, "no time"},
	} {
		problem := randomChain(rand.New(rand.NewPCG(1, 5)))
		c.change(problem)
		if _, err := stagechain.Solve(context.Background(), problem); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// BenchmarkLarge: 100 units on 64 devices, for a step and for the slowest stage.
func BenchmarkLarge(b *testing.B) {
	problem := &stagechain.Problem{Units: 100, Devices: 64, MostStages: 64}
	for size := 1; size <= 64; size *= 2 {
		problem.Sizes = append(problem.Sizes, size)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	time := make([]float64, problem.Units+1)
	for i := range problem.Units {
		time[i+1] = time[i] + 1 + rng.Float64()/10
	}
	problem.Time = func(from, to, size, behind int) float64 {
		devices := float64(problem.Sizes[size])
		if float64(to-from)*float64(behind+1)/devices > 200 {
			return math.Inf(1)
		}
		return (time[to]-time[from])/math.Pow(devices, 0.8) + 0.01*float64(behind)
	}
	for name, factors := range map[string][2]float64{"step": {31, 1}, "slowest": {1, 0}} {
		problem.Steady, problem.Fill = factors[0], factors[1]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got, err := stagechain.Solve(context.Background(), problem)
				if err != nil || !got.Optimal() {
					b.Fatalf("%+v, %v", got, err)
				}
			}
		})
	}
}
