package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/order"
)

// randomStages is a table of random units for pipelines.
func randomStages(rng *rand.Rand, n int, mode costmodel.Mode) *costmodel.Table {
	size := func(top int64) int64 { return rng.Int64N(top) }
	t := &costmodel.Table{Workload: costmodel.Workload{Mode: mode}, Workspaces: 2, Pipe: &costmodel.StageCosts{Rotary: size(50)}}
	if mode == costmodel.Load {
		t.Workspaces = 0
	}
	for range n {
		u := costmodel.Unit{
			Params: 1 + size(1000), OptimizerState: size(2000), Padding: size(10), StatePadding: size(20), StepTransient: size(400), Output: size(200),
			Products: rng.IntN(3) > 0, Recompute: mode == costmodel.Train && rng.IntN(3) == 0, Tail: rng.IntN(3),
		}
		if rng.IntN(2) == 0 {
			u.CheckpointedOutput = u.Output
		}
		for range 1 + rng.IntN(4) {
			s := costmodel.LayerMemory{Forward: size(900), HeadPeak: size(2) * size(500)}
			if mode == costmodel.Train {
				s.Saved, s.Grads, s.HeadPeak = size(700), size(500), 0
				s.Forward += s.Saved
				s.Backward = s.Grads + size(900)
				s.BackwardGrads = s.Grads
				s.AccumPeak = s.Backward - size(1+s.Grads)
				s.RecomputeKept = size(2) * size(1+s.Saved)
			}
			u.Layers = append(u.Layers, s)
		}
		if mode == costmodel.Train {
			u.Entry, u.AutocastCopies = size(1+u.Layers[0].Saved), size(2)*size(600)
		} else {
			u.CheckpointedOutput = 0
		}
		t.Units = append(t.Units, u)
	}
	return t
}

// TestStageChain: the closed form of every stage is the walk's peak.
func TestStageChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 3000 {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)]
		n := 1 + rng.IntN(9)
		table := randomStages(rng, n, mode)
		chain := NewStageChain(table)
		s := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe}[rng.IntN(2)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		rank := rng.Int64N(s.Stages)
		at := costmodel.Interval{First: rng.IntN(n), End: 0}
		at.End = at.First + 1 + rng.IntN(n-at.First)
		place := Rank{s, rank, []costmodel.Interval{at}}
		walk := Walk(Pipeline(table, place, dev))
		if got := chain.Peak(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v, rank %d, units %v of %d: closed form %d, walk %d (%s)", mode, s, rank, at, n, got, walk.Memory.Total(), walk.At)
		}
	}
}

// TestLooped: the same of ranks with several stages.
func TestLooped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 2000 {
		mode := []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)]
		table := randomStages(rng, 12, mode)
		chain := NewStageChain(table)
		s := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 1 + rng.Int64N(3), Chunks: 2 + rng.Int64N(2), MicroBatches: 1 + rng.Int64N(9)}
		for s.Check() != nil {
			s.MicroBatches++
		}
		place := Rank{Schedule: s, Index: rng.Int64N(s.Stages)}
		end := 0
		for c := range s.Chunks {
			first := end + rng.IntN(2)
			end = first + 1 + rng.IntN(3)
			if c == s.Chunks-1 && rng.IntN(2) == 0 {
				end = 12
			}
			place.Chunks = append(place.Chunks, costmodel.Interval{First: first, End: min(end, 12)})
		}
		walk := Walk(Pipeline(table, place, dev))
		if got := chain.Peak(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v: closed form %d, walk %d (%s)", mode, place, got, walk.Memory.Total(), walk.At)
		}
	}
}

func randomSchedule(rng *rand.Rand, most int64) costmodel.Schedule {
	s := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}[rng.IntN(3)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(most)}
	if s.Kind == costmodel.Interleaved {
		s.Chunks = 1 + rng.Int64N(4)
	}
	for s.Check() != nil {
		s.MicroBatches++
	}
	return s
}

// TestStagePeakOfPhases: what a walk of a few times of each phase finds is
// what a walk of every action finds.
func TestStagePeakOfPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	dev := &costmodel.Device{WorkspaceBytes: 77}
	for range 1500 {
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
		want := Walk(every.events)
		if got := Walk(Pipeline(table, place, dev)); got != want {
			t.Fatalf("%+v: %+v, want %+v", place, got, want)
		}
		if got := NewStageChain(table).Peak(place, 2*77); got != want.Memory.Total() {
			t.Fatalf("%+v: the chain says %d, want %d", place, got, want.Memory.Total())
		}
	}
}
