package order

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func randomSchedule(rng *rand.Rand, most int64) costmodel.Schedule {
	s := costmodel.Schedule{Kind: []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}[rng.IntN(3)], Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(most)}
	if s.Kind == costmodel.Interleaved {
		s.Chunks = 1 + rng.Int64N(4)
	}
	s.AnyMicroBatches = rng.IntN(3) == 0
	for s.Check() != nil {
		s.MicroBatches++
	}
	return s
}

// TestPhases: the phases, with few actions, expand to the order.
func TestPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		s := randomSchedule(rng, 70)
		for rank := range s.Stages {
			var out []Action
			length := 0
			for _, p := range Phases(s, rank) {
				length += len(p.Actions)
				for n := range p.Times {
					for _, a := range p.Actions {
						a.MicroBatch += n * p.Advance
						out = append(out, a)
					}
				}
			}
			if !reflect.DeepEqual(out, Of(s, rank)) {
				t.Fatalf("%+v rank %d: %v, want %v", s, rank, out, Of(s, rank))
			}
			if most := int(16 * s.Chunks * s.Stages); length > most {
				t.Errorf("%+v rank %d: %d actions in phases, want at most %d", s, rank, length, most)
			}
		}
	}
}
