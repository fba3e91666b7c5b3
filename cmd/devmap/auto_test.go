package main

import (
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestFastest: the first row that fits and is not tight wins, or else the first that fits.
// Accelerate's own map never wins.
func TestFastest(t *testing.T) {
	row := func(verdict devicemap.Verdict, current bool) strategy.Row {
		return strategy.Row{Fits: verdict != "no", Current: current, Solution: &planner.Solution{Verdict: verdict}}
	}
	for _, c := range []struct {
		rows []strategy.Row
		want int // -1 for none
	}{
		{[]strategy.Row{row("fits", true), row("tight", false), row("fits", false), row("fits", false)}, 2},
		{[]strategy.Row{row("tight", false), row("tight", false), row("no", false)}, 0},
		{[]strategy.Row{row("fits", true), row("no", false)}, -1},
		{nil, -1},
	} {
		got := -1
		for i, best := 0, fastest(c.rows); i < len(c.rows); i++ {
			if best == &c.rows[i] {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("row %d is the fastest, want %d", got, c.want)
		}
	}
}
