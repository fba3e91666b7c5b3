package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// known is a drawn problem with an answer to it.
type known struct {
	dags.Line

	Known float64 `json:"known"`
}

// knownOf reads a list, a line a problem.
func knownOf(name string, data []byte) ([]known, error) {
	all, err := dags.ReadAs[known](name, data)
	if err != nil {
		return nil, err
	}
	for i, one := range all {
		if one.Known <= 0 {
			return nil, fmt.Errorf("%s:%d: no known answer", name, i+1)
		}
	}
	return all, nil
}

// prices shows how far prices alone come to known answers, without any search: the
// processor's time is that of this process, so that the figures are those of one core.
func prices(ctx context.Context, out io.Writer, given settings) error {
	data, err := os.ReadFile(given.priced)
	if err != nil {
		return err
	}
	all, err := knownOf(given.priced, data)
	if err != nil {
		return err
	}
	return pricesOf(ctx, out, all, given.pricesLimit, cpuTime)
}

const priceForm = "%-46s %10s %10s %8s %8s\n"

// pricesOf prints the table; clock is what has been used so far.
func pricesOf(ctx context.Context, out io.Writer, all []known, limit time.Duration, clock func() time.Duration) error {
	grid := &table{writer: out}
	grid.printf("prices alone: lower bounds at a known largest load in ms, after %v of processor each\n", limit)
	grid.printf(priceForm, "problem", "known", "bound", "gap", "CPU s")
	mean := 0.0
	for i := range all {
		problem, err := all[i].Problem()
		if err != nil {
			return err
		}
		begin := clock()
		bound, err := priced(ctx, problem, all[i].Known, func() bool { return clock()-begin < limit })
		if err != nil {
			return err
		}
		gap := max(0, 1-bound/all[i].Known)
		mean += gap / float64(len(all))
		grid.printf(priceForm, all[i].Name(), load(all[i].Known), load(bound), percent(gap), fmt.Sprintf("%.1f", (clock()-begin).Seconds()))
	}
	grid.printf("%d problems, mean gap %s\n", len(all), percent(mean))
	return grid.err
}

// priced is the bound by prices for an answer of a value, as long as there is more time
// and more to be had.
func priced(ctx context.Context, problem *graph.Problem, value float64, more func() bool) (float64, error) {
	const turn = 20_000_000 // of work, in steps of about a nanosecond
	bound := boundprice.New(ctx, netlist.New(graph.NewInstance(problem, problem.Groups())), value)
	for ctx.Err() == nil && more() && !bound.Done(value) {
		if bound.Outgrown(value) {
			bound = bound.Again(ctx, value)
		}
		bound.Improve(ctx, value, turn)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return bound.Value, nil
}
