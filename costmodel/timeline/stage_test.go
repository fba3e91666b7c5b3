package timeline

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

var samples = flag.Int("draws", 1, "times as many random cases")

// randomStages is a table of random units for pipelines.
func randomStages(rng *rand.Rand, count int, mode costmodel.Mode) *costmodel.Table {
	size := func(top int64) int64 { return rng.Int64N(top) }
	table := &costmodel.Table{Workload: costmodel.Workload{Mode: mode}, Workspaces: 2, Rotary: size(50)}
	for range count {
		unit := costmodel.Unit{
			Params: 1 + size(1000), OptimizerState: size(2000), Padding: size(10), StatePadding: size(20), StepTransient: size(400), Output: size(200),
			Products: rng.IntN(3) > 0, Recompute: mode == costmodel.Train && rng.IntN(3) == 0, Tail: rng.IntN(3),
		}
		if rng.IntN(2) == 0 {
			unit.CheckpointedOutput = unit.Output
		}
		for range 1 + rng.IntN(4) {
			memory := costmodel.LayerMemory{Forward: size(900), HeadPeak: size(2) * size(500)}
			if mode == costmodel.Train {
				memory.Saved, memory.Grads, memory.HeadPeak = size(700), size(500), 0
				memory.Forward += memory.Saved
				memory.Backward = memory.Grads + size(900)
				memory.BackwardGrads = memory.Grads
				memory.AccumPeak = memory.Backward - size(1+memory.Grads)
				memory.RecomputeSaved = size(2) * size(1+memory.Saved)
			}
			unit.Layers = append(unit.Layers, memory)
		}
		if mode == costmodel.Train {
			unit.Entry, unit.AutocastCopies = size(1+unit.Layers[0].Saved), size(2)*size(600)
		} else {
			unit.CheckpointedOutput = 0
		}
		table.Units = append(table.Units, unit)
	}
	return table
}

// TestStageChain: the closed form of every stage is the walk's peak.
func TestStageChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 1000 * *samples {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)]
		count := 1 + rng.IntN(9)
		table := randomStages(rng, count, mode)
		chain := newStageChain(table)
		schedule := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		rank := rng.Int64N(schedule.Stages)
		at := costmodel.Interval{First: rng.IntN(count), End: 0}
		at.End = at.First + 1 + rng.IntN(count-at.First)
		place := Rank{schedule, rank, []costmodel.Interval{at}}
		walk := walk(pipelineEvents(table, place, dev))
		if got := chain.Peak(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v, rank %d, units %v of %d: closed form %d, walk %d (%s)", mode, schedule, rank, at, count, got, walk.Memory.Total(), walk.At)
		}
	}
}

// TestLooped: the same of ranks with several stages.
func TestLooped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 300 * *samples {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)]
		table := randomStages(rng, 12, mode)
		chain := newStageChain(table)
		schedule := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 1 + rng.Int64N(3), Chunks: 2 + rng.Int64N(2), MicroBatches: 1 + rng.Int64N(9)}
		for schedule.Check() != nil {
			schedule.MicroBatches++
		}
		place := Rank{Schedule: schedule, Index: rng.Int64N(schedule.Stages)}
		end := 0
		for c := range schedule.Chunks {
			first := end + rng.IntN(2)
			end = first + 1 + rng.IntN(3)
			if c == schedule.Chunks-1 && rng.IntN(2) == 0 {
				end = 12
			}
			place.Chunks = append(place.Chunks, costmodel.Interval{First: first, End: min(end, 12)})
		}
		walk := walk(pipelineEvents(table, place, dev))
		if got := chain.Peak(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v: closed form %d, walk %d (%s)", mode, place, got, walk.Memory.Total(), walk.At)
		}
	}
}

func randomSchedule(rng *rand.Rand, most int64) costmodel.Schedule {
	schedule := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}[rng.IntN(3)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(most)}
	if schedule.Kind == costmodel.Interleaved {
		schedule.Chunks = 1 + rng.Int64N(4)
	}
	for schedule.Check() != nil {
		schedule.MicroBatches++
	}
	return schedule
}

// TestStagePeakOfPhases: a walk of a few times of each phase finds the peak of a walk of every action.
func TestStagePeakOfPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 500 * *samples {
		table := randomStages(rng, 12, []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer}[rng.IntN(3)])
		place := Rank{Schedule: randomSchedule(rng, 40)}
		place.Index = rng.Int64N(place.Schedule.Stages)
		end := 0
		for range place.Schedule.Chunks {
			first := end + rng.IntN(2)
			end = first + 1 + rng.IntN(2)
			place.Chunks = append(place.Chunks, costmodel.Interval{First: first, End: end})
		}
		every := rankOf(table, place, dev)
		every.phases = []order.Phase{{Actions: order.Of(place.Schedule, place.Index), Times: 1}}
		want := walk(every.events)
		if got := walk(pipelineEvents(table, place, dev)); got != want {
			t.Fatalf("%+v: %+v, want %+v", place, got, want)
		}
		if got := newStageChain(table).Peak(place, 2*77); got != want.Memory.Total() {
			t.Fatalf("%+v: the chain says %d, want %d", place, got, want.Memory.Total())
		}
	}
}
