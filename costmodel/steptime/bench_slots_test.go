package steptime

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// BenchmarkSlots is a step of 36 units on 4 devices, as a search counts it.
func BenchmarkSlots(b *testing.B) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.Interleaved} {
		b.Run(string(kind), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			table, topo := randomTable(random, 4, 36)
			table.Workload.Schedule, table.Workload.MicroBatches = kind, 8
			runs := 4
			if kind == costmodel.Interleaved {
				runs = 8
			}
			place, ticks := cutUp(random, 36, runs, 4), TicksOf(table, topo)
			for b.Loop() {
				if _, err := ticks.Seconds(place); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
