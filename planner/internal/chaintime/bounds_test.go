package chaintime_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestSums: the sum at any waits is a bound on the step of any map. At the map's own waits it is
// the step that steptime's clocks simulate.
func TestSums(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(61, 62))
	waits := 0
	for i := range randomproblem.Samples(400) {
		p := randomproblem.Timed(t, rng)
		p.Pins, p.Together, p.Topology.Links = nil, nil, nil
		randomproblem.Hosted(rng, &p)
		m := make(devicemap.Map, len(p.Costs.Units))
		for u := range m {
			m[u] = devicemap.Device(rng.IntN(len(p.Topology.Devices)))
		}
		step := *devicemap.StepSeconds(p.Costs, p.Topology, m)
		own, all := chaintime.Waiting(randomproblem.Instance(t, &p), m)
		if !randomproblem.Close(own, step) {
			t.Fatalf("%d: %v takes %v s, and %v at its own waits", i, m, step, own)
		}
		if !randomproblem.Close(all[0], step) {
			waits++ // the sum without waits for hosts differs
		}
		for _, sum := range all {
			if sum > step*(1+1e-12) {
				t.Fatalf("%d: %v takes %v s, and a sum says %v at least", i, m, step, sum)
			}
		}
	}
	if waits < 130 {
		t.Errorf("the host was waited for in %d maps", waits)
	}
}

// TestNaiveBounds: some bounds of a device map are for any order of devices. No assignment has a
// shorter step, or a shorter update of its slowest device.
func TestNaiveBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(63, 64))
	tried, met := 0, 0
	for i := range randomproblem.Samples(400) {
		p := randomproblem.Timed(t, rng)
		p.Pins, p.Together, p.Topology.Links = nil, nil, nil
		randomproblem.Hosted(rng, &p)
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Costs.Units))) > 300 {
			continue
		}
		bounds, update, err := chaintime.Bounds(randomproblem.Instance(t, &p))
		if err != nil {
			t.Fatal(err)
		}
		least, slowest := math.Inf(1), math.Inf(1)
		randomproblem.EveryMap(&p, 0, func(m devicemap.Map) {
			least = min(least, *devicemap.StepSeconds(p.Costs, p.Topology, m))
			slowest = min(slowest, updateOf(&p, m))
		})
		for _, b := range bounds {
			if b > least*(1+1e-12) {
				t.Fatalf("%d: no map is said to take less than %v s, and one takes %v", i, b, least)
			}
			if randomproblem.Close(b, least) {
				met++
			}
		}
		if update > slowest*(1+1e-12) {
			t.Fatalf("%d: no update is said to take less than %v s, and one takes %v", i, update, slowest)
		}
		tried++
	}
	if tried < 130 || met < tried/4 {
		t.Errorf("%d problems, and the bound was met %d times", tried, met)
	}
}

// updateOf returns the update time of a map's slowest device.
func updateOf(p *planner.Problem, m devicemap.Map) float64 {
	sums, slowest := make([]float64, len(p.Topology.Devices)), 0.
	for u, d := range m {
		sums[d] += steptime.Unit(p.Costs, p.Topology, int(d), u).Update
		slowest = max(slowest, sums[d])
	}
	return slowest
}
