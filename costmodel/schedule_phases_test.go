package costmodel

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func randomSchedule(rng *rand.Rand, most int64) Schedule {
	s := Schedule{[]ScheduleKind{OneFOneB, GPipe, Interleaved}[rng.IntN(3)], 1 + rng.Int64N(5), 1, 1 + rng.Int64N(most)}
	if s.Kind == Interleaved {
		s.Chunks = 1 + rng.Int64N(4)
	}
	for s.Check() != nil {
		s.MicroBatches++
	}
	return s
}

// TestPhases: written out, the phases are the order, with few actions.
func TestPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		s := randomSchedule(rng, 70)
		for rank := range s.Stages {
			var out []Action
			length := 0
			for _, p := range s.Phases(rank) {
				length += len(p.Actions)
				for n := range p.Times {
					for _, a := range p.Actions {
						a.MicroBatch += n * p.Advance
						out = append(out, a)
					}
				}
			}
			if !reflect.DeepEqual(out, s.Order(rank)) {
				t.Fatalf("%+v rank %d: %v, want %v", s, rank, out, s.Order(rank))
			}
			if most := int(16 * s.Chunks * s.Stages); length > most {
				t.Errorf("%+v rank %d: %d actions in phases, want at most %d", s, rank, length, most)
			}
		}
	}
}
