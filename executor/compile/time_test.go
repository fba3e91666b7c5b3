package compile

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestStep: a compiled program takes as long as the plan says, to the picosecond.
func TestStep(t *testing.T) {
	for seed := range uint64(3000) {
		drawn := draw(rand.New(rand.NewPCG(seed, 3)))
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

func places[D ~int](placement []D) []int {
	out := make([]int, len(placement))
	for unit, device := range placement {
		out[unit] = int(device)
	}
	return out
}
