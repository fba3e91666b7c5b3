package planner_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestHostLists compares the choice of moved blocks on two GPUs with every list of blocks and every
// cut. The search tries few lists, so some choices are not the shortest.
func TestHostLists(t *testing.T) {
	t.Parallel()
	compared, shortest, moved := 0, 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 99))
		p := fixtures.Must(splitProblem(rng, []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.ZBH1}[rng.IntN(3)], true))(t)
		p.Objective, p.Workload, p.Costs = planner.Time, p.Costs.Workload, nil
		p.Topology.Devices = p.Topology.Devices[:2]
		work := &p.Workload
		work.OffloadActivations, work.Recompute, work.Seq, work.World, work.MicroBatches = "", "none", 512, 2, 2+rng.Int64N(7)
		work.Batch = 4 * work.MicroBatches
		blocks := 0
		for unit := range p.Graph.Units {
			if len(p.Graph.Units[unit].Exec) > 1 {
				blocks++
			}
		}
		if blocks > 5 {
			continue
		}
		open := fixtures.Must(planner.Solve(t.Context(), *p, planner.Settings{}))(t)
		peak, squeezed := open.Devices[open.Bottleneck].Predicted, 0.4+0.6*rng.Float64()
		for i := range p.Topology.Devices {
			device := &p.Topology.Devices[i]
			device.PinnedBytesPerSecond = math.Pow(10, 10.5+2.5*rng.Float64())
			device.ReservedBytes = device.CapacityBytes - peak.OverheadBytes - int64(squeezed*float64(peak.PeakAllocatedBytes))
		}
		if rng.IntN(3) == 0 {
			p.Topology.HostMemoryBytes = 1 + rng.Int64N(1<<26)
		}
		best := shortestOfLists(t, p, blocks)
		work.OffloadActivations = "auto"
		auto, err := planner.Solve(t.Context(), *p, planner.Settings{})
		value, bound := math.Inf(1), 0.
		if large := (*planner.InfeasibleError)(nil); !errors.As(err, &large) {
			found := fixtures.Must(auto, err)(t)
			value, bound = found.Value, found.LowerBound
			if found.Costs.Workload.OffloadActivations != "" {
				moved++
			}
		}
		compared++
		switch {
		case value < best*(1-1e-9) || bound > best*(1+1e-9):
			t.Errorf("seed %d: a step of %v s and a bound of %v s, and the shortest of all lists takes %v s", seed, value, bound, best)
		case value <= best*(1+1e-9) || math.IsInf(best, 1):
			shortest++
		}
	}
	if moved < 10 || shortest < compared*95/100 {
		t.Errorf("%d of %d steps are the shortest, and %d plans move blocks", shortest, compared, moved)
	}
}

// shortestOfLists returns the shortest step of all lists and cuts on two GPUs; +Inf if none fits.
func shortestOfLists(t *testing.T, p *planner.Problem, blocks int) float64 {
	t.Helper()
	best := math.Inf(1)
	for list := range 1 << blocks {
		work, moved := p.Workload, make([]bool, blocks)
		for block := range moved {
			moved[block] = list>>block&1 == 1
		}
		if list > 0 {
			work.OffloadActivations = costmodel.RecomputeOf(moved)
		}
		table := fixtures.Must(estimate.Table(p.Graph, fixtures.Must(estimate.Resolve(p.Graph, work))(t)))(t)
		for cut := 1; cut < len(p.Graph.Units); cut++ {
			placed := make(devicemap.Map, len(p.Graph.Units))
			for unit := cut; unit < len(placed); unit++ {
				placed[unit] = 1
			}
			if len(devicemap.Check(p.Graph, table, p.Topology, placed.Flatten(p.Graph), nil).Faults) > 0 {
				continue
			}
			if step := devicemap.StepSeconds(table, p.Topology, placed); step != nil {
				best = min(best, *step)
			}
		}
	}
	return best
}
