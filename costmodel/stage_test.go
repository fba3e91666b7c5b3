package costmodel

import (
	"math/rand/v2"
	"testing"
)

// randomStages is a table of random units for pipelines.
func randomStages(rng *rand.Rand, n int, mode Mode) *Table {
	size := func(top int64) int64 { return rng.Int64N(top) }
	t := &Table{Workload: Workload{Mode: mode}, Workspaces: 2, Pipe: &StageCosts{Rotary: size(50)}}
	if mode == Load {
		t.Workspaces = 0
	}
	for range n {
		u := Unit{
			Params: 1 + size(1000), OptimizerState: size(2000), Padding: size(10), StatePadding: size(20), StepTransient: size(400), Output: size(200),
			Products: rng.IntN(3) > 0, Recompute: mode == Train && rng.IntN(3) == 0, Tail: rng.IntN(3),
		}
		if rng.IntN(2) == 0 {
			u.Handed = u.Output
		}
		for range 1 + rng.IntN(4) {
			s := Step{Forward: size(900), Late: size(2) * size(500)}
			if mode == Train {
				s.Saved, s.Grads, s.Late = size(700), size(500), 0
				s.Forward += s.Saved
				s.Backward = s.Grads + size(900)
				s.BackwardGrads = s.Grads
				s.Again = s.Backward - size(1+s.Grads)
				s.Kept = size(2) * size(1+s.Saved)
			}
			u.Steps = append(u.Steps, s)
		}
		if mode == Train {
			u.Entry, u.Cached = size(1+u.Steps[0].Saved), size(2)*size(600)
		} else {
			u.Handed = 0
		}
		t.Units = append(t.Units, u)
	}
	return t
}

// TestStageChain: the closed form of every stage is the walk's peak.
func TestStageChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dev := &Device{WorkspaceBytes: 77}
	for range 3000 {
		mode := []Mode{Train, Train, Infer, Load}[rng.IntN(4)]
		n := 1 + rng.IntN(9)
		table := randomStages(rng, n, mode)
		chain := NewStageChain(table)
		s := Schedule{[]ScheduleKind{OneFOneB, GPipe}[rng.IntN(2)], 1 + rng.Int64N(5), 1, 1 + rng.Int64N(9)}
		rank := rng.Int64N(s.Stages)
		at := Stretch{rng.IntN(n), 0}
		at.End = at.First + 1 + rng.IntN(n-at.First)
		walk := table.StagePeak(StagePlace{s, rank, []Stretch{at}}, dev)
		if got := chain.Peak(s, rank, at, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v, rank %d, units %v of %d: closed form %d, walk %d (%s)", mode, s, rank, at, n, got, walk.Memory.Total(), walk.At)
		}
	}
}

// TestLooped: the same of ranks with several stages.
func TestLooped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	dev := &Device{WorkspaceBytes: 77}
	for range 2000 {
		mode := []Mode{Train, Train, Infer, Load}[rng.IntN(4)]
		table := randomStages(rng, 12, mode)
		chain := NewStageChain(table)
		s := Schedule{Interleaved, 1 + rng.Int64N(3), 2 + rng.Int64N(2), 1 + rng.Int64N(9)}
		for s.Check() != nil {
			s.MicroBatches++
		}
		place := StagePlace{Schedule: s, Rank: rng.Int64N(s.Stages)}
		end := 0
		for c := range s.Chunks {
			first := end + rng.IntN(2)
			end = first + 1 + rng.IntN(3)
			if c == s.Chunks-1 && rng.IntN(2) == 0 {
				end = 12
			}
			place.Chunks = append(place.Chunks, Stretch{first, min(end, 12)})
		}
		walk := table.StagePeak(place, dev)
		if got := chain.Looped(place, 2*77); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v: closed form %d, walk %d (%s)", mode, place, got, walk.Memory.Total(), walk.At)
		}
	}
}
