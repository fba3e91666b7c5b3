package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// choose finds the fastest strategy that fits, and says which and why.
func (command *planCommand) choose(ctx context.Context, asked *ask.Question) (*strategy.Row, string, error) {
	rows, fault := strategy.Rows(ctx, asked.Problem, asked.Options)
	if len(rows) == 0 || !rows[0].Fits {
		return nil, "", nothingFits(ctx, asked, rows)
	}
	best := &rows[0]
	why := reason(rows)
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

// reason says why the first row is chosen.
func reason(rows []strategy.Row) string {
	best, fit := &rows[0], 0
	for i := range rows {
		if rows[i].Fits {
			fit++
		}
	}
	msg := fmt.Sprintf("--strategy auto chose %s (%s)", show.Described(&best.Resolved), best.Resolved.Runtime)
	if best.StepSeconds == nil {
		return msg + ": of those that fit it leaves most memory free"
	}
	msg += fmt.Sprintf(", the fastest of %d that fit: %s a step of %s", fit, show.Seconds(*best.StepSeconds), show.Plural(best.Tokens, "token"))
	if fit > 1 {
		next := &rows[1]
		msg += fmt.Sprintf("; next is %s (%s), %.2f times as long a token", show.Described(&next.Resolved), next.Resolved.Runtime, next.SecondsPerToken/best.SecondsPerToken)
	}
	return msg
}

// nothingFits is the error of a table in which no row fits: what is missing
// in the nearest, and what would help.
func nothingFits(ctx context.Context, asked *ask.Question, rows []strategy.Row) error {
	if len(rows) == 0 { // no row has the strategy and the engine that were asked for
		_, err := asked.Resolved()
		return cmp.Or(err, out.Usagef("no strategy takes this workload"))
	}
	near := &rows[0] // of those that do not fit; they come before the refused rows
	if near.Refused != nil {
		if len(rows) == 1 {
			return rows[0].Refused
		}
		return out.Usagef("no strategy takes this workload: %s (%s): %w", show.Described(&rows[0].Workload), rows[0].Workload.Runtime, rows[0].Refused)
	}
	return infeasible(ctx, fmt.Errorf("nothing fits on %s: the nearest, %s (%s), is %v short",
		show.Plural(len(asked.Topology.Devices), "GPU"), show.Described(&near.Resolved), near.Resolved.Runtime, costmodel.Bytes(-near.Headroom)), asked)
}
