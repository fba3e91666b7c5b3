package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// giants shows that problems far larger than any model's are answered, in the
// time that they are given, and what they take: the largest resident memory of
// this process so far, which is why the section is best run alone.
func giants(ctx context.Context, out io.Writer, _ settings) error {
	grid := &table{writer: out}
	grid.printf("giants: wall seconds, the time limit, the most memory of the process so far\n")
	const form = "%-46s %8s %6s %8s %12s %12s %8s  %s\n"
	grid.printf(form, "problem", "wall s", "limit", "GB", "value", "bound", "gap", "status")
	for _, size := range []struct{ items, devices int }{{1_000_000, 8}, {100_000, 4096}} {
		const limit = 5 * time.Second
		begin := time.Now()
		answer, err := giantChain(ctx, size.items, size.devices, limit)
		if err != nil {
			return err
		}
		status := "optimal"
		if !answer.Optimal() {
			status = "stopped"
		}
		value, bound := answer.Value.Float(), answer.LowerBound.Float()
		grid.printf(form, fmt.Sprintf("chain of %d on %d", size.items, size.devices), fmt.Sprintf("%.2f", time.Since(begin).Seconds()), limit,
			gigabytes(), load(value), load(bound), percent((value-bound)/value), status)
	}
	for _, devices := range []int{8, 64, 1024} {
		const limit = 5 * time.Second
		line := dags.Line{Mode: "contiguous", Kind: "layered", Nodes: 20_000, Devices: devices, Width: 40, Capacity: 1.3, Transfers: 0.1, Seed: 18}
		problem, err := line.Anew()
		if err != nil {
			return err
		}
		begin := time.Now()
		answer, err := downset.Solve(ctx, problem, graph.Settings{TimeLimit: limit})
		if err != nil {
			return fmt.Errorf("%s: %w", line.Name(), err)
		}
		grid.printf(form, line.Name(), fmt.Sprintf("%.2f", time.Since(begin).Seconds()), limit,
			gigabytes(), load(answer.Value), load(answer.LowerBound), percent(answer.Gap()), answer.Status)
	}
	return grid.err
}

// giantChain is a chain of layers of 64 to 128 MB on like devices.
func giantChain(ctx context.Context, items, devices int, limit time.Duration) (chain.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	random := rand.New(rand.NewPCG(uint64(items), 18))
	sums := make([]int64, items+1)
	for i := range items {
		sums[i+1] = sums[i] + 1<<26 + random.Int64N(1<<26)
	}
	return chain.Solve(ctx, chain.Problem{
		Items: items, Budgets: slices.Repeat([]int64{80 << 30}, devices), Additive: true,
		Peak: func(_, from, to int, _ uint64) int64 { return sums[to] - sums[from] },
	}, chain.Settings{})
}

// gigabytes is the most that this process has held; Linux counts it in KiB.
func gigabytes() string {
	var rusage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &rusage) != nil {
		return load(math.NaN())
	}
	return fmt.Sprintf("%.3f", float64(rusage.Maxrss)*1024/1e9)
}
