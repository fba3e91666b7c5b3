package chain_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// series is a chain of n different items on k devices with g groups. The first item is as large as
// a third of the chain, which makes the windows of the second objective as wide as possible.
func series(n, k, g int, spread bool) chain.Problem {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	costs := make([]int64, n)
	for i := range costs {
		costs[i] = 1<<26 + rng.Int64N(1<<26)
	}
	sum := prefix(costs)
	group := make([]int64, g)
	for i := range group {
		group[i] = sum[n] / int64(3*(i+1))
	}
	budgets := slices.Repeat([]int64{80 << 30}, k)
	if spread {
		for d := range budgets {
			budgets[d] = 16<<30 + rng.Int64N(64<<30)
		}
	}
	return chain.Problem{
		Items: n, Groups: g, Budgets: budgets, Additive: true,
		Peak: func(_, a, b int, groups uint64) int64 { return sum[b] - sum[a] + sumOf(groups, group) },
	}
}

// peaked makes the peak a maximum of two sums: monotone and O(1), but not additive.
func peaked(p chain.Problem) chain.Problem {
	sum := p.Peak
	p.Additive = false
	p.Peak = func(d, a, b int, groups uint64) int64 {
		return max(sum(d, a, b, groups), sum(d, a, (a+b)/2, groups)+int64(b-a)<<26)
	}
	return p
}

func BenchmarkSolve(b *testing.B) {
	for _, bb := range []struct {
		name string
		p    chain.Problem
	}{
		{"additive/n=1000/k=64", series(1000, 64, 0, true)},
		{"additive/n=10000/k=64", series(10_000, 64, 0, true)},
		{"additive/n=100000/k=64", series(100_000, 64, 0, true)},
		{"group/n=1000/k=64", series(1000, 64, 1, true)},
		{"group/n=10000/k=64", series(10_000, 64, 1, true)},
		{"group/n=100000/k=64", series(100_000, 64, 1, true)},
		{"groups=4/n=200/k=8", series(200, 8, 4, false)},
		{"groups=6/n=200/k=64", series(200, 64, 6, false)},
		{"any/n=2000/k=16", peaked(series(2000, 16, 0, true))},
		{"anyGroup/n=2000/k=16", peaked(series(2000, 16, 1, true))},
		{"anyGroup/n=20000/k=64", peaked(series(20_000, 64, 1, true))},
		{"groups=4/n=10000/k=64", series(10_000, 64, 4, true)},
		{"groups=6/n=10000/k=64", series(10_000, 64, 6, true)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var res chain.Result
			for b.Loop() {
				var err error
				if res, err = chain.Solve(context.Background(), bb.p, chain.Settings{}); err != nil {
					b.Fatal(err)
				}
			}
			if !res.Optimal() {
				b.Errorf("not proved: %v above %v", res.Value, res.LowerBound)
			}
			b.ReportMetric(float64(res.Probes), "probes")
			b.ReportMetric(map[bool]float64{true: 1}[res.SquaresProved], "proved")
		})
	}
}
