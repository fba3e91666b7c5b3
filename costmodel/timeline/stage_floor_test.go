package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestStageFloor: the floor of a stage is at most the peak of every stage of its rank with the same
// units, and never falls when units are added.
func TestStageFloor(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const workspace = 77
	tight := 0
	for range 1500 * *samples {
		count := 2 + rng.IntN(7)
		table := randomStages(rng, count, []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)])
		vary(rng, table)
		if table.Workload.Mode == costmodel.Train && rng.IntN(2) == 0 {
			cutUnits(rng, table)
		}
		chain := newStageChain(table)
		schedule := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: 1 + rng.Int64N(4), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		rank := rng.Int64N(schedule.Stages)
		outer := costmodel.Interval{First: 1 + rng.IntN(count), End: 0}
		if rank == 0 {
			outer.First = 0
		}
		outer.End = outer.First + 1 + rng.IntN(count)
		if rank == schedule.Stages-1 {
			outer.End = count
		}
		if outer.First >= outer.End || outer.End > count || rank < schedule.Stages-1 && outer.End == count {
			continue // another rank has no unit
		}
		inner := costmodel.Interval{First: outer.First + rng.IntN(outer.End-outer.First), End: 0}
		inner.End = inner.First + 1 + rng.IntN(outer.End-inner.First)
		all, some := Rank{schedule, rank, []costmodel.Interval{outer}}, Rank{schedule, rank, []costmodel.Interval{inner}}
		low, high, peak := chain.Floor(some, workspace, true), chain.Floor(all, workspace, true), chain.Peak(all, workspace)
		if low > high || high > peak {
			t.Fatalf("%+v, rank %d: the floor of %v is %d, of %v %d, whose peak is %d", schedule, rank, inner, low, outer, high, peak)
		}
		if high*10 >= peak*9 {
			tight++
		}
	}
	if tight < 300 {
		t.Errorf("only %d floors are near the peak", tight)
	}
}

// vary gives tables random messages of one size, or padding that the model's end removes.
func vary(rng *rand.Rand, table *costmodel.Table) {
	even, padded := rng.IntN(3) == 0, rng.IntN(3) == 0
	for unit := range table.Units {
		if even {
			table.Units[unit].Output = 100
		}
		if padded {
			table.Units[unit].StatePadding = rng.Int64N(3000)
		}
	}
}

// TestLoopedFloor: the floor of some stages of a rank is at most their peak with others.
func TestLoopedFloor(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 250 * *samples {
		table := randomStages(rng, 12, []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)])
		vary(rng, table)
		schedule := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 1 + rng.Int64N(3), Chunks: 3, MicroBatches: 1 + rng.Int64N(9)}
		for schedule.Check() != nil {
			schedule.MicroBatches++
		}
		all := Rank{Schedule: schedule, Index: rng.Int64N(schedule.Stages), Chunks: []costmodel.Interval{{First: 0, End: 1 + rng.IntN(4)}, {First: 5, End: 6 + rng.IntN(3)}, {First: 9, End: 12}}}
		some := all
		some.Chunks = append([]costmodel.Interval(nil), all.Chunks...)
		for c := range some.Chunks {
			if rng.IntN(2) == 0 {
				some.Chunks[c] = costmodel.Interval{}
			}
		}
		chain := newStageChain(table)
		if low, peak := chain.Floor(some, 77, false), chain.Peak(all, 77); low > peak {
			t.Fatalf("%+v holds %d at least, and %+v %d", some, low, all, peak)
		}
	}
}
