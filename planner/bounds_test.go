package planner_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/brute"
)

// hosted makes the host waited for, now and then, and several micro-batches
// or tokens of the step.
func hosted(rng *rand.Rand, p *planner.Problem) {
	w := &p.Costs.Workload
	w.MicroBatches = 1 + rng.Int64N(3)
	for d := range p.Topology.Devices {
		dev := &p.Topology.Devices[d]
		dev.IssueSeconds, dev.BackwardIssueSeconds = float64(rng.IntN(4))/2, float64(rng.IntN(3))/2
	}
	if w.Mode == costmodel.Infer {
		w.Seq, w.NewTokens = 4, rng.Int64N(4)
	}
	for u := range p.Costs.Units {
		work := &p.Costs.Units[u].Work
		work.Forward.Kernels, work.Backward.Kernels = float64(rng.IntN(4)), float64(rng.IntN(6))
		work.Token = costmodel.Pass{Products: float64(rng.IntN(3)), Kernels: float64(rng.IntN(3))}
	}
}

// TestPaces: a sum at any pace is a bound on the step of a map, whatever the
// map, and at the map's own it is the step itself, as costmodel's clocks play
// it.
func TestPaces(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(61, 62))
	waits := 0
	for i := range 1500 {
		p := timedProblem(t, rng)
		p.Topology.Links = nil
		hosted(rng, &p)
		m := make(devicemap.Map, len(p.Costs.Units))
		place := make([]int, len(m))
		for u := range m {
			place[u] = rng.IntN(len(p.Topology.Devices))
			m[u] = devicemap.Device(place[u])
		}
		step := *devicemap.StepSeconds(p.Costs, p.Topology, m)
		own, all := p.Paced(place)
		if !close9(own, step) {
			t.Fatalf("%d: %v takes %v s, and %v at its own pace", i, place, step, own)
		}
		if !close9(all[0], step) {
			waits++ // the pace that waits for no host is another
		}
		for _, sum := range all {
			if sum > step*(1+1e-12) {
				t.Fatalf("%d: %v takes %v s, and a pace says %v at least", i, place, step, sum)
			}
		}
	}
	if waits < 500 {
		t.Errorf("the host was waited for in %d of 1500 maps", waits)
	}
}

// everyMap calls f with every assignment of the units to first and the devices
// behind it.
func everyMap(p *planner.Problem, first devicemap.Device, f func(devicemap.Map)) {
	m := make(devicemap.Map, len(p.Costs.Units))
	var put func(u int)
	put = func(u int) {
		if u == len(m) {
			f(m)
			return
		}
		for m[u] = first; int(m[u]) < len(p.Topology.Devices); m[u]++ {
			put(u + 1)
		}
	}
	put(0)
}

// TestNaiveBounds: no assignment at all has a shorter step than the bounds of
// a device map that hold for any order, nor a slowest device with a shorter
// update.
func TestNaiveBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(63, 64))
	tried, met := 0, 0
	for i := range 1500 {
		p := timedProblem(t, rng)
		p.Pins, p.Together, p.Topology.Links = nil, nil, nil
		hosted(rng, &p)
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Costs.Units))) > 300 {
			continue
		}
		bounds, update, err := p.NaiveBounds()
		if err != nil {
			t.Fatal(err)
		}
		least, slowest := math.Inf(1), math.Inf(1)
		everyMap(&p, 0, func(m devicemap.Map) {
			least = min(least, *devicemap.StepSeconds(p.Costs, p.Topology, m))
			slowest = min(slowest, updateOf(&p, m))
		})
		for _, b := range bounds {
			if b > least*(1+1e-12) {
				t.Fatalf("%d: no map is said to take less than %v s, and one takes %v", i, b, least)
			}
			if close9(b, least) {
				met++
			}
		}
		if update > slowest*(1+1e-12) {
			t.Fatalf("%d: no update is said to take less than %v s, and one takes %v", i, update, slowest)
		}
		tried++
	}
	if tried < 500 || met < tried/4 {
		t.Errorf("%d problems, and the bound was met %d times", tried, met)
	}
}

// updateOf is the update of a map's slowest device.
func updateOf(p *planner.Problem, m devicemap.Map) float64 {
	sums, slowest := make([]float64, len(p.Topology.Devices)), 0.
	for u, d := range m {
		sums[d] += steptime.Unit(p.Costs, p.Topology, int(d), u).Update
		slowest = max(slowest, sums[d])
	}
	return slowest
}

// largestShare is that of a map's fullest device.
func largestShare(p *planner.Problem, m devicemap.Map) float64 {
	most := 0.
	for _, d := range devicemap.Predict(p.Costs, p.Topology, m) {
		most = max(most, d.Share())
	}
	return most
}

// TestAnyBounds: each bound of the largest share of any assignment is no more
// than the best of all of them, and at each moment of the step every map
// leaves the devices room.
func TestAnyBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(65, 66))
	tried, met := 0, map[string]int{}
	for i := range 1500 {
		p := randomProblem(t, rng)
		p.Anywhere = true
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue
		}
		if i%3 == 0 { // caches that grow as tokens are generated
			p.Costs.Workload = costmodel.Workload{Mode: costmodel.Infer, Batch: 1, Seq: 1, Precision: costmodel.BF16True}
			p.Costs.LastGradients = false
			for u := range p.Costs.Units {
				unit := &p.Costs.Units[u]
				unit.OptimizerState, unit.StepTransient, unit.Last = 0, 0, 0
				for s := range unit.Steps {
					cache := rng.Int64N(200)
					unit.Steps[s] = costmodel.Step{Layer: unit.Steps[s].Layer, KV: cache, Grown: rng.Int64N(400), Late: 1 + rng.Int64N(100), Forward: cache + rng.Int64N(100)}
				}
			}
		}
		best := brute.Solve(&p, false)
		bounds, err := p.AnyBounds(t.Context())
		if err != nil || best.Maps == 0 {
			continue // pins that contradict each other
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		early, err := p.AnyBounds(ended)
		if b := early["relaxed search"]; err != nil || b > best.Value*(1+1e-12) {
			t.Fatalf("%d: stopped at once, the relaxed search says that no share is below %v, and %v has %v", i, b, best.Map, best.Value)
		}
		for name, b := range bounds {
			if b > best.Value*(1+1e-12) {
				t.Fatalf("%d: %s says that no share is below %v, and %v has %v", i, name, b, best.Map, best.Value)
			}
			if b > 0.99*best.Value {
				met[name]++
			}
		}
		if spare, err := p.Spare(best.Value); err != nil || spare < 0 {
			t.Fatalf("%d: %v has a share of %v, and a moment lacks %d B under it (%v)", i, best.Map, best.Value, -spare, err)
		}
		tried++
	}
	if tried < 500 || met["largest unit"] < 100 || met["average"] < 100 || met["relaxed search"] < 5 {
		t.Errorf("%d problems; met %v", tried, met)
	}
}

// TestLeavingAverage: whatever leaves for the host, and wherever the rest is,
// no map has a smaller largest share than what must stay on average.
func TestLeavingAverage(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(71, 72))
	tried, near := 0, 0
	for i := range 1200 {
		p := randomProblem(t, rng)
		p.Pins, p.Together = nil, nil
		if i%3 == 0 && len(p.Graph.Units) > 2 { // what is pinned stays
			p.Pins = []planner.Pin{{Pattern: p.Graph.Units[1].Name, Device: 0}, {Pattern: p.Graph.Units[2].Name, Device: 0}}
		}
		if len(p.Graph.TiedUnits()) > 0 || math.Pow(float64(1+len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue // tied units leave whole, which is not tried here
		}
		w, err := estimate.Resolve(p.Graph, costmodel.Workload{Mode: pick(rng, costmodel.Infer, costmodel.Load), Batch: 1, Seq: 1, Precision: costmodel.BF16True})
		if err != nil {
			t.Fatal(err)
		}
		if p.Costs, err = estimate.Table(p.Graph, w); err != nil {
			t.Fatal(err)
		}
		average, err := p.LeavingAverage()
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		everyMap(&p, devicemap.CPU, func(m devicemap.Map) {
			if !slices.Contains(m, 0) {
				return // the first device runs what left, and is to hold something
			}
			if len(p.Pins) > 0 && slices.Contains(m[1:3], devicemap.CPU) {
				return
			}
			best = min(best, largestShare(&p, m))
		})
		if average > best*(1+1e-12) {
			t.Fatalf("%d: what must stay is said to be a share of %v, and a map has %v", i, average, best)
		}
		tried++
		if average > 0.5*best {
			near++
		}
	}
	if tried < 300 || near < 10 {
		t.Errorf("%d problems, in %d the bound is half of the best share", tried, near)
	}
}

// TestRefutes: a limit below the best share of any assignment is refuted, one
// above it is not; what is then said of all maps holds, and that the map at
// hand is the best is said only where nothing below it itself was asked for.
func TestRefutes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(73, 74))
	tried := 0
	for i := range 500 {
		p := randomProblem(t, rng)
		p.Anywhere, p.Pins = true, nil
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue
		}
		best := brute.Solve(&p, false)
		for _, part := range []float64{0.5, 0.9, 0.999, 1.001} {
			no, bound, proved, err := p.Refutes(t.Context(), part*best.Value)
			if err != nil {
				t.Fatal(err)
			}
			if no != (part < 1) || bound > best.Value*(1+1e-12) || proved && part < 0.999 {
				t.Fatalf("%d: the best share is %v; below %v of it nothing is said to be: %t, nothing below %v at all, and the map at hand is the best: %t", i, best.Value, part, no, bound, proved)
			}
			tried++
		}
	}
	if tried < 700 {
		t.Errorf("%d questions", tried)
	}
}

// TestNotFoundIsNotImpossible: a search that ends early, with a map that does
// not fit where another does, says that none was found and no more.
func TestNotFoundIsNotImpossible(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(75, 76))
	missed, proved := 0, 0
	for i := range 500 {
		p := randomProblem(t, rng)
		_, err := planner.Solve(t.Context(), p, planner.Settings{Probes: 1})
		var no *planner.InfeasibleError
		if !errors.As(err, &no) {
			continue
		}
		_, err = planner.Solve(t.Context(), p, planner.Settings{})
		fits := err == nil
		said := "it does not fit on "
		if !no.Proved {
			said = "no placement that fits was found (on "
		}
		switch {
		case fits && no.Proved:
			t.Fatalf("%d: %v, and it fits", i, no)
		case !strings.HasPrefix(no.Error(), said) || no.Proved == strings.Contains(no.Error(), "that there is none is not proved"):
			t.Fatalf("%d: proved %t, and said: %v", i, no.Proved, no)
		case fits:
			missed++
		case no.Proved:
			proved++
		}
	}
	if missed < 3 || proved < 50 {
		t.Errorf("%d that fit were not found, %d were refuted", missed, proved)
	}
}
