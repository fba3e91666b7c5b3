package compile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestStep: a compiled program takes as long as the plan says, to the picosecond.
func TestStep(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		plan := newRandomPlan(rng)
		if rng.IntN(3) == 0 {
			plan.surround(rng)
		}
		if plan.table.Workload.Mode == costmodel.Load {
			continue
		}
		for index := range plan.table.Units {
			unit := &plan.table.Units[index]
			unit.Work.Output = unit.Regions.Output
		}
		out := plan.compile(t)
		result, err := simulate.Run(out)
		if err != nil {
			t.Fatal(err)
		}
		want, err := steptime.TicksOf(plan.table, plan.topology).Seconds(places(plan.placement))
		if err != nil || float64(result.Makespan)/1e12 != want {
			t.Errorf("seed %d: %d ticks simulated, %v s planned\n%+v on %v", seed, result.Makespan, want, plan.table.Workload, plan.placement)
		}
	}
}

// surround puts units that pass before the first and after the last, on devices
// that messages reach late.
func (plan *randomPlan) surround(rng *rand.Rand) {
	passing := func(name string) {
		plan.table.Units = append(plan.table.Units, costmodel.Unit{Name: name, Regions: costmodel.Regions{Passes: true}})
		plan.placement = append(plan.placement, devicemap.Device(rng.IntN(len(plan.topology.Devices))))
	}
	units, placement, before := plan.table.Units, plan.placement, 1+rng.IntN(2)
	plan.table.Units, plan.placement = nil, nil
	for index := range before {
		passing(fmt.Sprintf("before.%d", index))
	}
	plan.table.Units, plan.placement = append(plan.table.Units, units...), append(plan.placement, placement...)
	for index := before; index < len(plan.table.Units); index++ {
		for tie := range plan.table.Units[index].Regions.Tied {
			plan.table.Units[index].Regions.Tied[tie].Owner += before
		}
	}
	passing("behind")
	if plan.table.Workload.Strategy != costmodel.DeviceMap { // one run a device
		for index := range before {
			plan.placement[index] = placement[0]
		}
		plan.placement[len(plan.placement)-1] = placement[len(placement)-1]
	}
	plan.graph.Units = nil
	for index := range plan.table.Units {
		plan.graph.Units = append(plan.graph.Units, modelgraph.Unit{Name: plan.table.Units[index].Name, First: index, End: index + 1})
	}
	for from := range plan.topology.Devices {
		for to := range plan.topology.Devices {
			if from != to {
				plan.topology.Links = append(plan.topology.Links, costmodel.Link{From: from, To: to, BytesPerSecond: 1e9, LatencySeconds: float64(rng.IntN(3)) / 1e6})
			}
		}
	}
}

func places[D ~int](placement []D) []int {
	out := make([]int, len(placement))
	for unit, device := range placement {
		out[unit] = int(device)
	}
	return out
}

// TestLongOffload: a step with many micro-batches, whose repetition is passed over, takes as long as
// all its copies between device and host say.
func TestLongOffload(t *testing.T) {
	count := 0
	for seed := range uint64(2000) {
		plan := newRandomPlan(rand.New(rand.NewPCG(seed, 4)))
		work := &plan.table.Workload
		if work.OffloadActivations == "" {
			continue
		}
		count++
		work.MicroBatches = 30 + int64(seed%40)
		work.Batch = work.MicroBatches
		for index := range plan.table.Units {
			unit := &plan.table.Units[index]
			unit.Work.Output = unit.Regions.Output
		}
		result, err := simulate.Run(plan.compile(t))
		if err != nil {
			t.Fatal(err)
		}
		want, err := steptime.TicksOf(plan.table, plan.topology).Seconds(places(plan.placement))
		if err != nil || float64(result.Makespan)/1e12 != want {
			t.Errorf("seed %d: %d ticks simulated, %v s planned\n%+v on %v", seed, result.Makespan, want, *work, plan.placement)
		}
	}
	if count < 200 {
		t.Errorf("%d pipelines offload", count)
	}
}
