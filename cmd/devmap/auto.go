package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// choose returns the fastest strategy that fits, with a text that says why.
func (command *planCommand) choose(ctx context.Context, asked *ask.Question) (*strategy.Row, string, error) {
	rows, fault := strategy.Rows(ctx, asked.Problem, asked.Options)
	best := fastest(rows)
	if best == nil {
		return nil, "", nothingFits(ctx, asked, rows)
	}
	why := reason(rows, best)
	if never := estimate.Unmeasured(&best.Resolved); never != "" {
		why += "; " + never + " was never measured: its figures rest on the engine's code alone"
	}
	if fault != nil {
		why += "; " + fault.Error()
	}
	return best, why, nil
}

// unmeasured names the strategies of the rows that resemble no measured run.
func unmeasured(rows []strategy.Row) []string {
	var never []string
	for i := range rows {
		row := &rows[i]
		if row.Refused == nil && estimate.Unmeasured(&row.Resolved) != "" && !slices.Contains(never, string(row.Resolved.Strategy)) {
			never = append(never, string(row.Resolved.Strategy))
		}
	}
	if len(never) == 0 {
		return nil
	}
	return []string{"no measured run is like " + strings.Join(never, ", ") + " here"}
}

// fastest returns the first row that fits and is not tight, else the first that fits; nil if none
// fits. Accelerate's own map does not count, as it is not a plan of devmap.
func fastest(rows []strategy.Row) *strategy.Row {
	var best *strategy.Row
	for i := range rows {
		row := &rows[i]
		if row.Refused == nil && row.Fits && !row.Current && (best == nil || isTight(best) && !isTight(row)) {
			best = row
		}
	}
	return best
}

// isTight reports that the peak fits, and that the largest reserve of the allocator's pool does
// not.
func isTight(row *strategy.Row) bool { return row.Solution.Verdict == "tight" }

// reason says why a row was chosen.
func reason(rows []strategy.Row, best *strategy.Row) string {
	fit := slices.DeleteFunc(slices.Clone(rows), func(row strategy.Row) bool { return !row.Fits || isTight(&row) && !isTight(best) })
	kind := "fit"
	if isTight(best) {
		kind = "fit, all of them tightly"
	}
	msg := fmt.Sprintf("--strategy auto chose %s (%s)", show.Described(&best.Resolved), best.Resolved.Runtime)
	if best.StepSeconds == nil {
		return msg + ": of those that fit it leaves most memory free"
	}
	msg += fmt.Sprintf(", the fastest of %d that %s: %s a step of %s", len(fit), kind, show.Seconds(*best.StepSeconds), show.Plural(best.Tokens, "token"))
	if len(fit) > 1 {
		next := &fit[1]
		msg += fmt.Sprintf("; next is %s (%s), %.2f times as long a token", show.Described(&next.Resolved), next.Resolved.Runtime, next.SecondsPerToken/best.SecondsPerToken)
	}
	if first := &rows[0]; isTight(first) && !isTight(best) {
		msg += fmt.Sprintf("; %s (%s) is faster and tight", show.Described(&first.Resolved), first.Resolved.Runtime)
	}
	return msg
}

// nothingFits returns the error of a table without a fitting row: the memory missing in the closest
// row, and changes that would help.
func nothingFits(ctx context.Context, asked *ask.Question, rows []strategy.Row) error {
	if len(rows) == 0 { // no row has the requested strategy and engine
		_, err := asked.Resolved()
		return cmp.Or(err, out.Usagef("no strategy takes this workload"))
	}
	near := &rows[0] // rows that do not fit come before refused rows
	if near.Refused != nil {
		if len(rows) == 1 {
			return rows[0].Refused
		}
		return out.Usagef("no strategy takes this workload: %s (%s): %w", show.Described(&rows[0].Workload), rows[0].Workload.Runtime, rows[0].Refused)
	}
	what := "nothing"
	if errors.Is(ctx.Err(), context.Canceled) {
		what = "nothing that was tried"
	}
	return infeasible(ctx, fmt.Errorf("%s fits on %s: the nearest, %s (%s), is %v short", what,
		show.Plural(len(asked.Topology.Devices), "GPU"), show.Described(&near.Resolved), near.Resolved.Runtime, costmodel.Bytes(-near.Headroom)), asked)
}

// uneven says that replicas process more than the batch, which is not a multiple of their number.
func uneven(rows []strategy.Row, batch int64, gpus int) []string {
	for i := range rows {
		work := &rows[i].Resolved
		if all := work.Batch * int64(gpus); rows[i].Refused == nil && work.DeepSpeed == nil && work.Strategy.Traits().Replicated && work.Mode != costmodel.Load && (work.Runtime != "jax" || work.Mode != costmodel.Infer) && all > batch {
			return []string{fmt.Sprintf("a batch of %d does not divide by %d GPUs: replicas take %d each, and work on %d", batch, gpus, work.Batch, all)}
		}
	}
	return nil
}

// common returns the warnings that all answered rows share. Warnings about one strategy are in its
// plan.
func common(graph *modelgraph.Graph, rows []strategy.Row) []string {
	var out []string
	first := true
	for i := range rows {
		switch {
		case rows[i].Refused != nil || rows[i].Current: // the user's own map has no costs
		case first:
			out, first = allWarnings(graph, rows[i].Solution.Warnings), false
		default:
			row := allWarnings(graph, rows[i].Solution.Warnings)
			out = slices.DeleteFunc(out, func(text string) bool { return !slices.Contains(row, text) })
		}
	}
	return out
}
