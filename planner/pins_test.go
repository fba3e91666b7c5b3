package planner_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestPins: patterns name units, modules around them, layers in them, or prefixes. The rest is as
// balanced as the pins allow.
func TestPins(t *testing.T) {
	sizes := []int64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}
	for _, c := range []struct {
		pins     []devicemap.Pin
		together [][]string
		want     string
	}{
		{nil, nil, "[0 0 0 0 1 1 1 1 2 2 2 2]"},
		{[]devicemap.Pin{{Pattern: "h.1", Device: 1}}, nil, "[0 1 1 1 1 1 1 2 2 2 2 2]"},
		{[]devicemap.Pin{{Pattern: "h.1*", Device: 2}}, nil, ""}, // h.1 and h.10 pull all units between them along
		{[]devicemap.Pin{{Pattern: "h", Device: 1}}, nil, "[1 1 1 1 1 1 1 1 1 1 1 1]"},
		{nil, [][]string{{"h.0", "h.5"}}, "[0 0 0 0 0 0 1 1 1 2 2 2]"},
		{[]devicemap.Pin{{Pattern: "h.11", Device: 0}}, nil, "[0 0 0 0 0 0 0 0 0 0 0 0]"},
	} {
		p := randomproblem.Chain(t, sizes, 1000, 1000, 1000)
		p.Pins, p.Together = c.pins, c.together
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		if err != nil {
			t.Errorf("%v %v: %v", c.pins, c.together, err)
			continue
		}
		if got := fmt.Sprint(sol.Map); c.want != "" && got != c.want {
			t.Errorf("%v %v: %s, want %s", c.pins, c.together, got, c.want)
		}
		for _, pin := range c.pins {
			if u, ok := unitNamed(p.Graph, pin.Pattern); ok && int(sol.Map[u]) != pin.Device {
				t.Errorf("%v: %s is on %v", c.pins, pin.Pattern, sol.Map[u])
			}
		}
	}
}

func TestPinsRefused(t *testing.T) {
	for _, c := range []struct {
		pins     []devicemap.Pin
		together [][]string
		want     string
	}{
		{[]devicemap.Pin{{Pattern: "h.33", Device: 0}}, nil, `pin "h.33": no module matches; the nearest is "h.3"`},
		{nil, [][]string{{"h.0", "k.1"}}, `together "k.1": no module matches; the nearest is "h.1"`},
		{[]devicemap.Pin{{Pattern: "h.0", Device: 3}}, nil, `pin "h.0": device 3 is not among the 3 devices`},
		{[]devicemap.Pin{{Pattern: "h.0", Device: -1}}, nil, `pin "h.0": device -1 is not among the 3 devices`},
		{[]devicemap.Pin{{Pattern: "h.0", Device: 0}, {Pattern: "h.0", Device: 1}}, nil, `pin "h.0": "h.0" cannot be on device 1: it, or a unit that must stay with it, is pinned to device 0 (the smallest contradiction found: pin=h.0=0 pin=h.0=1)`},
		{[]devicemap.Pin{{Pattern: "h.0", Device: 0}, {Pattern: "h.3", Device: 1}}, [][]string{{"h.0", "h.4"}}, `pin "h.3": "h.3" cannot be on device 1: it, or a unit that must stay with it, is pinned to device 0 (the smallest contradiction found: pin=h.0=0 pin=h.3=1 together=h.0,h.4)`},
		{[]devicemap.Pin{{Pattern: "h.1", Device: 2}, {Pattern: "h.4", Device: 0}}, nil, `"h.1" on device 2 and "h.4" on device 0 contradict each other: each device takes one stretch of the model, in device order (the smallest contradiction found: pin=h.1=2 pin=h.4=0)`},
	} {
		p := randomproblem.Chain(t, []int64{1, 2, 3, 4, 5}, 100, 100, 100)
		p.Pins, p.Together = c.pins, c.together
		_, err := planner.Solve(t.Context(), p, planner.Settings{})
		var constraint *planner.ConstraintError
		if err == nil || err.Error() != c.want || !errors.As(err, &constraint) {
			t.Errorf("%v %v\n error %v\n  want %s", c.pins, c.together, err, c.want)
		}
	}
}

// unitNamed returns the index of a unit by name.
func unitNamed(g *modelgraph.Graph, name string) (int, bool) {
	i := slices.IndexFunc(g.Units, func(unit modelgraph.Unit) bool { return unit.Name == name })
	return i, i >= 0
}
