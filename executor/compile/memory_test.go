package compile

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// TestArenas: what the compiler lays out, the timeline foretold: the arena in
// closed form and by its walk, and of that what is idle where most is alive.
func TestArenas(t *testing.T) {
	for seed := range uint64(3000) {
		drawn := draw(rand.New(rand.NewPCG(seed, 2)))
		compiler, out := drawn.compiled(t)
		report := out.Check()
		chain := timeline.NewArenaChain(drawn.table)
		for rank, device := range compiler.ranks {
			place := timeline.Rank{Schedule: compiler.schedule(), Index: int64(rank)}
			for _, stage := range device.stages {
				place.Chunks = append(place.Chunks, stage.Interval)
			}
			for len(place.Chunks) < int(place.Schedule.Chunks) {
				place.Chunks = append(place.Chunks, costmodel.Interval{})
			}
			on := &drawn.topology.Devices[device.index]
			closed := chain.Peak(place, drawn.table.Workspaces*on.WorkspaceBytes)
			peak := timeline.Walk(timeline.Arena(drawn.table, place, on))
			idle := peak.Memory.Workspace
			if drawn.table.Workload.Mode != costmodel.Load {
				idle -= compiler.workspace(device)
			}
			arena := out.Devices[device.index].Arena
			if closed != arena || peak.Memory.Total() != arena || idle != report.Devices[device.index].Idle {
				t.Fatalf("seed %d, device %d: arena %d, closed form %d, walk %d (%s); idle %d, walk %d\n%+v on %v", seed, device.index, arena, closed, peak.Memory.Total(), peak.At, report.Devices[device.index].Idle, idle, drawn.table.Workload, drawn.placement)
			}
		}
	}
}
