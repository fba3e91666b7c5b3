package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/minmax"
	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
	"github.com/devmap-dev/devmap/planner/internal/solve/highs"
)

// minMax proves min–max assignments with internal/solve/assign and with HiGHS.
func minMax(ctx context.Context, out io.Writer, given settings) error {
	instances, err := minmax.Instances()
	if err != nil {
		return err
	}
	grid := &table{writer: out}
	grid.printf("min-max assignment: seconds to the proof; HiGHS 1.15 (WebAssembly) on two models, the sooner counts, cut at %v each\n", given.highsLimit)
	if err := warm(ctx); err != nil {
		return err
	}
	const form = "%4s %4v %3v %9v %9v %9s %8s %8s %8s %-6s  %s\n"
	grid.printf(form, "kind", "n", "k", "value MiB", "bound", "devmap s", "HiGHS s", "by item", "by size", "sooner", "tight bound")
	var ours []time.Duration
	sooner, proved, theirs := 0, 0, 0
	for _, instance := range instances {
		own, took, err := minMaxOwn(ctx, instance, given.limit)
		if err != nil {
			return err
		}
		byItem, bySize, err := minMaxHighs(ctx, instance, given.highsLimit)
		if err != nil {
			return err
		}
		for _, h := range []answer{byItem, bySize} {
			if err := h.agrees(own); err != nil {
				return fmt.Errorf("%s of %d items on %d devices: %w", instance.Kind, len(instance.Sizes), instance.Devices, err)
			}
		}
		best := byItem.sooner(bySize)
		won := own.Optimal() && (!best.proved || took < best.took)
		ours = append(ours, took)
		sooner, proved, theirs = sooner+one(won), proved+one(own.Optimal()), theirs+one(best.proved)
		grid.printf(form, instance.Kind, len(instance.Sizes), instance.Devices, int64(own.Value)/mib, int64(own.LowerBound)/mib,
			seconds(took, own.Optimal()), best, byItem, bySize, mark(won), own.Bound)
	}
	slices.Sort(ours)
	grid.printf("proved: devmap %d, HiGHS %d of %d; devmap sooner on %d of %d; devmap's median %.1f ms, longest %.2f s\n",
		proved, theirs, len(instances), sooner, len(instances), ours[len(ours)/2].Seconds()*1e3, ours[len(ours)-1].Seconds())
	return grid.err
}

// minMaxTrial proves fresh instances of eight kinds, ten seconds each, devmap
// alone.
func minMaxTrial(ctx context.Context, out io.Writer, _ settings) error {
	const limit = 10 * time.Second
	instances, err := minmax.Trial()
	if err != nil {
		return err
	}
	grid := &table{writer: out}
	grid.printf("min-max assignment, fresh instances: seconds to the proof, at most %v each\n", limit)
	const form = "%-6s %4v %3v %10v %10v %9s  %s\n"
	grid.printf(form, "kind", "n", "k", "value MiB", "bound", "s", "tight bound")
	proved := 0
	for _, instance := range instances {
		own, took, err := minMaxOwn(ctx, instance, limit)
		if err != nil {
			return err
		}
		proved += one(own.Optimal())
		grid.printf(form, instance.Kind, len(instance.Sizes), instance.Devices, int64(own.Value)/mib, int64(own.LowerBound)/mib, seconds(took, own.Optimal()), own.Bound)
	}
	grid.printf("proved: %d of %d\n", proved, len(instances))
	return grid.err
}

const mib = 1 << 20

// warm makes HiGHS compile outside the timing.
func warm(ctx context.Context) error {
	_, err := highs.Solve(ctx, &highs.Model{Columns: []highs.Column{{Upper: 1}}}, highs.Options{})
	return err
}

func minMaxOwn(ctx context.Context, instance minmax.Instance, limit time.Duration) (assign.Solution, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	problem := assign.Problem{Sizes: instance.Sizes, Budgets: slices.Repeat([]int64{1}, instance.Devices)}
	solution, err := assign.Solve(ctx, problem, assign.Settings{})
	return solution, time.Since(begin), err
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func mark(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// seconds prints a time; a time without proof is more than that.
func seconds(duration time.Duration, proved bool) string {
	if !proved {
		return fmt.Sprintf("> %.0f", duration.Seconds())
	}
	return fmt.Sprintf("%.4f", duration.Seconds())
}
