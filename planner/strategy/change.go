package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// change is the way from a problem to a row of a changed one. The settings are
// read off what differs between the two, so that none that the row needs is
// missing.
func (problem *Problem) change(changed *Problem, row *Row) Change {
	change := Change{Row: *row, To: changed, Set: slices.Clone(changed.set), Without: slices.Clone(changed.without), Notes: changed.notes}
	asked := problem.Workload
	if problem.Asked != nil {
		asked = *problem.Asked
	}
	set, without := difference(&asked, &row.Workload)
	traits := row.Workload.Strategy.Traits()
	if changed.Anywhere && !problem.Anywhere {
		set = append(set, costmodel.Set("contiguous", false))
	}
	for _, s := range []struct {
		field string
		idle  bool
	}{
		{"contiguous", problem.Anywhere && (!traits.Sequential || !changed.Anywhere)},
		{"pin", len(problem.Pins) > 0 && len(changed.Pins) == 0},
		{"together", len(problem.Together) > 0 && len(changed.Together) == 0},
		{"offload", problem.Offload != "" && changed.Offload == ""},
	} {
		if s.idle {
			without = append(without, s.field)
		}
	}
	change.Set, change.Without = slices.Concat(change.Set, set), slices.Concat(change.Without, without)
	if traits.Staged { // its parts run side by side
		change.Notes = slices.DeleteFunc(slices.Clone(change.Notes), func(name string) bool { return name == accumulates })
	}
	return change
}

// difference is what turns a request for one workload into one for another:
// fields to set, and the names of those that it must leave out. What comes with
// the strategy is not named.
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

// told are the changes that can be asked for, each once.
func (problem *Problem) told(changes []Change) []Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(changes, func(change Change) bool {
		words := fmt.Sprintf("%q %q %q", change.Set, change.Without, change.Notes)
		if seen[words] || problem.Takes != nil && !problem.Takes(&change) {
			return true
		}
		seen[words] = true
		return false
	})
}

// timed reports that what is minimised is a time.
func (problem *Problem) timed() bool {
	return problem.Objective == planner.Time || problem.Objective == planner.Latency
}

// within are the changes, found for the least memory, that fit with the
// shortest time too, with what they then come to.
func (problem *Problem) within(ctx context.Context, changes []Change) []Change {
	var out []Change
	for _, change := range changes {
		changed := *change.To
		changed.Objective = problem.Objective
		if change.Row = changed.row(ctx, change.Row.Workload); change.Row.Fits {
			out = append(out, change)
		}
	}
	return out
}
