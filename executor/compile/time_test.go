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
		drawn := draw(rng)
		if rng.IntN(3) == 0 {
			drawn.surround(rng)
		}
		if drawn.table.Workload.Mode == costmodel.Load {
			continue
		}
		for index := range drawn.table.Units {
			unit := &drawn.table.Units[index]
			unit.Work.Output = unit.Regions.Output
		}
		out := drawn.compile(t)
		result, err := simulate.Run(out)
		if err != nil {
			t.Fatal(err)
		}
		want := steptime.TicksOf(drawn.table, drawn.topology).Step(places(drawn.placement))
		if result.Makespan != want {
			t.Errorf("seed %d: %d ticks simulated, %d planned\n%+v on %v", seed, result.Makespan, want, drawn.table.Workload, drawn.placement)
		}
	}
}

// surround puts units that pass before the first and behind the last, on devices
// that messages reach late.
func (drawn *drawn) surround(rng *rand.Rand) {
	passing := func(name string) {
		drawn.table.Units = append(drawn.table.Units, costmodel.Unit{Name: name, Regions: costmodel.Regions{Passes: true}})
		drawn.placement = append(drawn.placement, devicemap.Device(rng.IntN(len(drawn.topology.Devices))))
	}
	units, placement, before := drawn.table.Units, drawn.placement, 1+rng.IntN(2)
	drawn.table.Units, drawn.placement = nil, nil
	for index := range before {
		passing(fmt.Sprintf("before.%d", index))
	}
	drawn.table.Units, drawn.placement = append(drawn.table.Units, units...), append(drawn.placement, placement...)
	for index := before; index < len(drawn.table.Units); index++ {
		for tie := range drawn.table.Units[index].Regions.Tied {
			drawn.table.Units[index].Regions.Tied[tie].Owner += before
		}
	}
	passing("behind")
	if drawn.table.Workload.Strategy != costmodel.DeviceMap { // one run a device
		for index := range before {
			drawn.placement[index] = placement[0]
		}
		drawn.placement[len(drawn.placement)-1] = placement[len(placement)-1]
	}
	drawn.graph.Units = nil
	for index := range drawn.table.Units {
		drawn.graph.Units = append(drawn.graph.Units, modelgraph.Unit{Name: drawn.table.Units[index].Name, First: index, End: index + 1})
	}
	for from := range drawn.topology.Devices {
		for to := range drawn.topology.Devices {
			if from != to {
				drawn.topology.Links = append(drawn.topology.Links, costmodel.Link{From: from, To: to, BytesPerSecond: 1e9, LatencySeconds: float64(rng.IntN(3)) / 1e6})
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
