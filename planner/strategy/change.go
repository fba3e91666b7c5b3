package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// Change is a step away from a problem, and the row that it leads to.
type Change struct {
	// Set are settings that replace the request's for the same field. The fields are a workload's
	// ([costmodel.Fields]) or a diffusion pipeline's (package costmodel/phases), and gpus, gpu,
	// contiguous and offload. Without are fields to leave out, pin and together included. With both
	// the request asks for Row.
	Set     []costmodel.Setting
	Without []string
	// Notes are changes that no setting has: "gradient accumulation".
	Notes []string
	Row   Row
	// To is the problem that Row answers.
	To *planner.Problem
}

// search is the problem that steps start from, or that a step led to. Then set and notes are the
// step's changes outside of the workload.
type search struct {
	comparison
	set   []costmodel.Setting
	notes []string
	// misfits are the problems that do not fit, of all steps; refused are those without an answer.
	misfits, refused map[string]bool
	*brief
}

// brief ends the search for changes of a problem with open degrees: one takes up to a second. After
// the end (zero: none) only GPUs and what follows are tried, until something fits.
type brief struct {
	end         time.Time
	found, wide bool
}

func (limit *brief) over() bool {
	return !limit.end.IsZero() && (limit.found || !limit.wide) && time.Now().After(limit.end)
}

// newSearch begins at a problem; nil if the catalogue lacks one of its GPUs.
func newSearch(problem planner.Problem, options Options) *search {
	var err error
	if problem.Topology, err = catalogue.Named(problem.Topology, cmp.Or(problem.Workload.Mode, costmodel.Infer)); err != nil {
		return nil
	}
	options.Current = false // it is no change
	return &search{comparison: comparison{Problem: problem, Options: options}, misfits: make(map[string]bool), refused: make(map[string]bool), brief: &brief{}}
}

// change is the way to a row of a changed problem. Its settings are all differences of the two.
func (problem *search) change(changed *search, row *Row) Change {
	change := Change{Row: *row, To: &changed.Problem, Set: slices.Clone(changed.set), Notes: changed.notes}
	asked := problem.Workload
	if problem.Asked != nil {
		asked = *problem.Asked
	}
	set, without := difference(&asked, &row.Workload)
	traits := row.Workload.Strategy.Traits()
	if changed.Unconstrained && !problem.Unconstrained {
		set = append(set, costmodel.Set("contiguous", false))
	}
	for _, s := range []struct {
		field string
		idle  bool
	}{
		{"contiguous", problem.Unconstrained && (!traits.Sequential || !changed.Unconstrained)},
		{"pin", len(problem.Pins) > 0 && len(changed.Pins) == 0},
		{"together", len(problem.Together) > 0 && len(changed.Together) == 0},
		{"offload", problem.Offload != "" && changed.Offload == ""},
	} {
		if s.idle {
			without = append(without, s.field)
		}
	}
	change.Set, change.Without = slices.Concat(change.Set, set), without
	if traits.Staged { // its parts run side by side
		change.Notes = slices.DeleteFunc(slices.Clone(change.Notes), func(name string) bool { return name == accumulates })
	}
	return change
}

// difference turns a request for one workload into one for another: fields to set, and fields to
// leave out. Fields that the strategy implies are not named.
func difference(from, to *costmodel.Workload) (set []costmodel.Setting, without []string) {
	for _, field := range costmodel.Fields() {
		was, is := field.Text(from), field.Text(to)
		switch {
		case was == is, was == "" && field.Implied(to):
		case is != "":
			set = append(set, costmodel.Setting{Field: field.Name, Value: is})
		case field.Default != "":
			set = append(set, costmodel.Setting{Field: field.Name, Value: field.Default})
		default:
			without = append(without, field.Name)
		}
	}
	return set, without
}

// distinct are changes that differ, each once.
func distinct(changes []Change) []Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(changes, func(change Change) bool {
		words := fmt.Sprintf("%q %q %q", change.Set, change.Without, change.Notes)
		again := seen[words]
		seen[words] = true
		return again
	})
}

// timed reports that the objective is a time.
func (problem *search) timed() bool {
	return problem.Objective == planner.Time || problem.Objective == planner.Latency
}

// within are the changes, found for the least memory, that also fit with the shortest time, with
// their new rows.
func (problem *search) within(ctx context.Context, changes []Change) []Change {
	var out []Change
	for _, change := range changes {
		changed := comparison{Problem: *change.To, Options: problem.Options}
		changed.Objective = problem.Objective
		if change.Row = changed.row(ctx, change.Row.Workload); change.Row.Fits {
			out = append(out, change)
		}
	}
	return out
}
