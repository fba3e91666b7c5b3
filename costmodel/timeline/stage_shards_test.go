package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// cutUnits makes units groups of replicas', some without parameters and gradients.
func cutUnits(rng *rand.Rand, table *costmodel.Table) {
	table.Workload.Strategy = costmodel.Pipeline
	for unit := range table.Units {
		out := &table.Units[unit]
		var grads int64
		for i := range out.Layers {
			grads += out.Layers[i].Grads
		}
		if rng.IntN(5) == 0 && grads == 0 {
			continue
		}
		table.Groups = append(table.Groups, costmodel.Group{
			Name: "group", Units: []int{unit}, Gathered: 1 + rng.Int64N(900), Buffer: rng.Int64N(900), CopyIn: rng.Int64N(300),
			Reduce: rng.Int64N(900), Reduced: min(grads, rng.Int64N(200)), LastGrad: rng.Int64N(200),
		})
	}
}

// TestSharedStages: the closed form of a stage with sharded parameters is the walk's peak, except
// for the very first gather: both count another stage's buffer there.
func TestSharedStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	moments := map[string]int{}
	for range 1500 * *samples {
		count := 1 + rng.IntN(9)
		table := randomStages(rng, count, costmodel.Train)
		cutUnits(rng, table)
		chain := newStageChain(table)
		schedule := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		at := costmodel.Interval{First: rng.IntN(count)}
		at.End = at.First + 1 + rng.IntN(count-at.First)
		place := Rank{schedule, rng.Int64N(schedule.Stages), []costmodel.Interval{at}}
		walk := walk(pipelineEvents(table, place, dev))
		moments[walk.At]++
		if got := chain.Peak(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%+v, units %v of %d: closed form %d, walk %d (%s)", place, at, count, got, walk.Memory.Total(), walk.At)
		}
	}
	if moments["gather of group"] == 0 || moments["reduce-scatter of group"] == 0 {
		t.Errorf("the draw is one-sided: %v", moments)
	}
}
