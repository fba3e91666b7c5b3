package costmodel

import "testing"

// TestPadded goes through the table of time steps of torch's interleaved
// schedule: whatever an action needs was made in a step before it, which is
// what PipelineScheduleMulti's exchange after each step relies on.
func TestPadded(t *testing.T) {
	for _, s := range []Schedule{{Interleaved, 4, 2, 8}, {Interleaved, 4, 2, 16}, {Interleaved, 2, 3, 4}} {
		made := map[played]int{}
		for rank := range s.Stages {
			for at, a := range s.padded(rank) {
				if a != nil {
					made[played{int(a.Chunk*s.Stages + rank), int(a.MicroBatch), a.Backward}] = at
				}
			}
		}
		if want := 2 * s.Stages * s.Chunks * s.MicroBatches; int64(len(made)) != want {
			t.Errorf("%+v: %d actions, want %d", s, len(made), want)
		}
		last := int(s.Stages*s.Chunks) - 1
		for a, at := range made {
			needs := played{a.stage - 1, a.batch, false}
			if a.backward {
				needs = played{a.stage + 1, a.batch, true}
				if a.stage == last {
					needs = played{last, a.batch, false}
				}
			}
			if before, ok := made[needs]; ok && before >= at {
				t.Errorf("%+v: %+v in step %d needs %+v of step %d", s, a, at, needs, before)
			}
		}
	}
}

// TestPaddedFewer: with fewer micro-batches than ranks a rank's table still
// begins with as many waits as its number, and has every action.
func TestPaddedFewer(t *testing.T) {
	s := Schedule{Interleaved, 8, 2, 1}
	for rank := range s.Stages {
		table, actions := s.padded(rank), int64(0)
		for at, a := range table {
			if a != nil {
				actions++
				if int64(at) < rank {
					t.Errorf("rank %d has %+v in step %d", rank, *a, at)
				}
			}
		}
		if want := 2 * s.Chunks * s.MicroBatches; actions != want {
			t.Errorf("rank %d has %d actions, want %d", rank, actions, want)
		}
	}
}
