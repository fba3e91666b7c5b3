package compile

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// TestArenas: what the compiler lays out, the timeline predicted: the arena in
// closed form and by its walk, and of that what is idle where most is alive.
func TestArenas(t *testing.T) {
	for seed := range uint64(3000) {
		plan := newRandomPlan(rand.New(rand.NewPCG(seed, 2)))
		compiler, out := plan.compiled(t)
		report := out.Check()
		chain := timeline.NewRanks(plan.table)
		for rank, device := range compiler.ranks {
			place := timeline.Rank{Schedule: compiler.schedule(), Index: int64(rank)}
			for _, stage := range device.stages {
				place.Chunks = append(place.Chunks, stage.Interval)
			}
			for len(place.Chunks) < int(place.Schedule.Chunks) {
				place.Chunks = append(place.Chunks, costmodel.Interval{})
			}
			on := &plan.topology.Devices[device.index]
			closed := chain.Peak(place, plan.table.Workspaces*on.WorkspaceBytes)
			peak := timeline.RankStep(plan.table, place, on).Peak()
			idle := peak.Memory.Workspace
			if plan.table.Workload.Mode != costmodel.Load {
				idle -= compiler.workspace(device)
			}
			arena := out.Devices[device.index].Arena
			if closed != arena || peak.Memory.Total() != arena || idle != report.Devices[device.index].Idle {
				t.Fatalf("seed %d, device %d: arena %d, closed form %d, walk %d (%s); idle %d, walk %d\n%+v on %v", seed, device.index, arena, closed, peak.Memory.Total(), peak.At, report.Devices[device.index].Idle, idle, plan.table.Workload, plan.placement)
			}
		}
	}
}
