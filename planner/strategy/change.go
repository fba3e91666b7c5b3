package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// change is the way from p to a row of the problem q. The settings are read off
// what differs between the two, so that none that the row needs is missing.
func (p *Problem) change(q *Problem, r *Row) Change {
	c := Change{Row: *r, To: q, Set: slices.Clone(q.set), Without: slices.Clone(q.without), Notes: q.notes}
	asked := p.Workload
	if p.Asked != nil {
		asked = *p.Asked
	}
	set, without := difference(&asked, &r.Workload)
	traits := r.Workload.Strategy.Traits()
	if q.Anywhere && !p.Anywhere {
		set = append(set, costmodel.Set("contiguous", false))
	}
	for _, s := range []struct {
		field string
		idle  bool
	}{
		{"contiguous", p.Anywhere && (!traits.Sequential || !q.Anywhere)},
		{"pin", len(p.Pins) > 0 && len(q.Pins) == 0},
		{"together", len(p.Together) > 0 && len(q.Together) == 0},
		{"offload", p.Offload != "" && q.Offload == ""},
	} {
		if s.idle {
			without = append(without, s.field)
		}
	}
	c.Set, c.Without = slices.Concat(c.Set, set), slices.Concat(c.Without, without)
	if traits.Staged { // its parts run side by side
		c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n string) bool { return n == accumulates })
	}
	return c
}

// difference is what turns a request for one workload into one for another:
// fields to set, and the names of those that it must leave out. What comes with
// the strategy is not named.
func difference(from, to *costmodel.Workload) (set []costmodel.Setting, without []string) {
	for _, f := range costmodel.Fields() {
		was, is := f.Text(from), f.Text(to)
		switch {
		case was == is, was == "" && f.Implied(to):
		case is != "":
			set = append(set, costmodel.Setting{Field: f.Name, Value: is})
		case f.Default != "":
			set = append(set, costmodel.Setting{Field: f.Name, Value: f.Default})
		default:
			without = append(without, f.Name)
		}
	}
	return set, without
}

// told are the changes that can be asked for, each once.
func (p *Problem) told(changes []Change) []Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(changes, func(c Change) bool {
		words := fmt.Sprintf("%q %q %q", c.Set, c.Without, c.Notes)
		if seen[words] || p.Takes != nil && !p.Takes(&c) {
			return true
		}
		seen[words] = true
		return false
	})
}

// timed are the changes, found for the least memory, that fit with the
// shortest step too, with what they then come to.
func timed(ctx context.Context, changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		q := *c.To
		q.Objective = planner.Time
		if c.Row = q.row(ctx, c.Row.Workload); c.Row.Fits() {
			out = append(out, c)
		}
	}
	return out
}
