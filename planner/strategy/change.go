package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/planner"
)

// Change is a step away from a problem, and the row that it leads to.
type Change struct {
	// What is the change as it is told: Set, a word on it, and Without, as in
	// `--batch 4 --strategy ddp (gradient accumulation) (without --schedule)`.
	What string
	// Set are flags, with their values, that stand in place of the command's
	// own of the same name. Without are the names of those that it must not
	// have. With both the command asks for Row.
	Set, Without []string
	Row          Row
	// To is the problem that Row answers.
	To *Problem
}

// change is the way from p to a row of the problem q. The flags are read off
// what differs between the two, so that none that the row needs is missing.
func (p *Problem) change(q *Problem, r *Row) Change {
	c := Change{Row: *r, To: q, Set: slices.Clone(q.set), Without: slices.Clone(q.without)}
	asked := p.Workload
	if p.Asked != nil {
		asked = *p.Asked
	}
	set, without := difference(&asked, &r.Workload)
	ordered := !r.Workload.Strategy.Traits().Sequential
	if q.Anywhere && !p.Anywhere {
		set = append(set, "--contiguous=false")
	}
	for _, f := range []struct {
		name string
		idle bool
	}{
		{"contiguous", p.Anywhere && (ordered || !q.Anywhere)},
		{"pin", len(p.Pins) > 0 && len(q.Pins) == 0},
		{"together", len(p.Together) > 0 && len(q.Together) == 0},
		{"offload", p.Offload != "" && q.Offload == ""},
	} {
		if f.idle {
			without = append(without, f.name)
		}
	}
	c.Set, c.Without = slices.Concat(c.Set, set), slices.Concat(c.Without, without)
	c.What = c.text(q.notes)
	return c
}

func (c *Change) text(notes []string) string {
	words := slices.Clone(c.Set)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " '\"$&|;()<>*?[]#~`\\\n") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	if c.Row.Workload.Strategy.Traits().Staged { // its parts run side by side
		notes = slices.DeleteFunc(slices.Clone(notes), func(n string) bool { return n == accumulates })
	}
	if len(notes) > 0 {
		words = append(words, "("+strings.Join(notes, ", ")+")")
	}
	if len(c.Without) > 0 {
		words = append(words, fmt.Sprintf("(without --%s)", strings.Join(c.Without, " --")))
	}
	return strings.Join(words, " ")
}

// told are the changes that the command can be given, each once.
func (p *Problem) told(changes []Change) []Change {
	seen := map[string]bool{}
	return slices.DeleteFunc(changes, func(c Change) bool {
		if seen[c.What] || p.Takes != nil && !p.Takes(&c) {
			return true
		}
		seen[c.What] = true
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
