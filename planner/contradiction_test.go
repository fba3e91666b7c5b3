package planner_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestContradictionIsSmallest: the named constraints contradict each other, and do not if any of
// them is removed.
func TestContradictionIsSmallest(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	sizes := map[int]int{}
	for i := range 800 {
		p := randomproblem.Chain(t, []int64{1, 2, 3, 4, 5, 6, 7, 8}, 100, 100, 100)
		name := func() string { return fmt.Sprint("h.", rng.IntN(8)) }
		for range 1 + rng.IntN(2) {
			p.Pins = append(p.Pins, devicemap.Pin{Pattern: name(), Device: rng.IntN(3)})
		}
		for range rng.IntN(12) {
			at := rng.IntN(7)
			p.Together = append(p.Together, []string{fmt.Sprint("h.", at), fmt.Sprint("h.", at+1)})
		}
		_, err := planner.Solve(t.Context(), p, planner.Settings{})
		var e *planner.ConstraintError
		if !errors.As(err, &e) || len(e.Pins)+len(e.Together) == 0 {
			continue
		}
		sizes[len(e.Pins)+len(e.Together)]++
		solve := func(pins []devicemap.Pin, together [][]string) error {
			q := p
			q.Pins, q.Together = pins, together
			_, err := planner.Solve(t.Context(), q, planner.Settings{})
			return err
		}
		if solve(e.Pins, e.Together) == nil {
			t.Fatalf("%d: %v and %v go together", i, e.Pins, e.Together)
		}
		for j := range e.Pins {
			less := append(append([]devicemap.Pin{}, e.Pins[:j]...), e.Pins[j+1:]...)
			if err := solve(less, e.Together); err != nil {
				t.Fatalf("%d: %v without %v: %v", i, e, e.Pins[j], err)
			}
		}
		for j := range e.Together {
			less := append(append([][]string{}, e.Together[:j]...), e.Together[j+1:]...)
			if err := solve(e.Pins, less); err != nil {
				t.Fatalf("%d: %v without %v: %v", i, e, e.Together[j], err)
			}
		}
	}
	if sizes[2] < 50 || sizes[3]+sizes[4]+sizes[5] < 10 {
		t.Errorf("contradictions by size %v: the draw is one-sided", sizes)
	}
}

func TestCostsRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*costmodel.Work)
		want   string
	}{
		{func(w *costmodel.Work) { w.Forward.Products = math.NaN() }, `planner: unit "h.1": its forward cost is NaN`},
		{func(w *costmodel.Work) { w.Backward.Traffic = math.Inf(1) }, `planner: unit "h.1": its backward cost is +Inf`},
		{func(w *costmodel.Work) { w.Update = math.Inf(-1) }, `planner: unit "h.1": its update cost is -Inf`},
		{func(w *costmodel.Work) { w.Token.Kernels = -1 }, `planner: unit "h.1": its token cost is -1`},
	} {
		p := randomproblem.Chain(t, []int64{1, 2, 3}, 100, 100)
		c.change(&p.Costs.Units[1].Work)
		if _, err := planner.Solve(t.Context(), p, planner.Settings{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestLinksMissing: if the topology lists links, a map over a missing link is an error under
// memory, and is avoided under time.
func TestLinksMissing(t *testing.T) {
	p := randomproblem.Chain(t, []int64{10, 10, 10}, 100, 100, 100)
	p.Costs.Workload.Mode = costmodel.Infer
	for d := range p.Topology.Devices {
		p.Topology.Devices[d].FLOPS = 1
	}
	p.Topology.Links = []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 1}}
	_, err := planner.Solve(t.Context(), p, planner.Settings{})
	var missing *instance.LinkError
	if !errors.As(err, &missing) || missing.From != 1 || missing.To != 2 {
		t.Errorf("%v names no missing link from 1 to 2", err)
	}
	p.Objective = planner.Time
	p.Pins = []devicemap.Pin{{Pattern: "h.0", Device: 0}, {Pattern: "h.2", Device: 1}}
	if sol, err := planner.Solve(t.Context(), p, planner.Settings{}); err != nil {
		t.Errorf("%v, %v", sol, err)
	}
	p.Pins = []devicemap.Pin{{Pattern: "h.0", Device: 0}, {Pattern: "h.1", Device: 2}, {Pattern: "h.2", Device: 2}}
	if sol, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &missing) || missing.From != 0 || missing.To != 2 {
		t.Errorf("%v, %v names no missing link from 0 to 2", sol, err)
	}
	p.Topology.Devices[0].Host, p.Topology.Devices[2].Host = "a", "a" // a link inside the host
	if sol, err := planner.Solve(t.Context(), p, planner.Settings{}); err != nil {
		t.Errorf("%v, %v", sol, err)
	}
}
