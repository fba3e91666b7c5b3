package order

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// tabled is an action of a micro-batch on a stage.
type tabled struct {
	stage, batch int
	backward     bool
}

// padded returns the order of an interleaved schedule, with nil for each step in which a rank waits
// (schedules.py _get_1f1b_rank_ops). A rank begins with as many waits as its number. It waits until
// the first backward returns, and before each backward of the end.
func padded(s costmodel.Schedule, rank int64) []*Action {
	warm, all := warmUp(s, rank), s.Chunks*s.MicroBatches
	order := interleaved(s, rank)
	out := make([]*Action, rank, rank+3*all)
	for i := range order {
		if int64(i) > 2*all-warm-1 {
			out = append(out, nil)
		}
		out = append(out, &order[i])
		if int64(i) == warm-1 {
			out = append(out, make([]*Action, max(0, s.Chunks*s.Stages+2*(s.Stages-1-rank)-warm-rank))...)
		}
	}
	return out
}

// TestColumn: step by step, a column equals the order with its waits.
func TestColumn(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 9))
	for range 500 {
		s := randomSchedule(rng, 40)
		if s.Kind != costmodel.Interleaved || s.AnyMicroBatches { // torch has no other tables
			continue
		}
		for rank := range s.Stages {
			column, padded := ColumnOf(s, rank), padded(s, rank)
			if s.MicroBatches >= s.Stages && column.Length != int64(len(padded)) {
				t.Fatalf("%+v, rank %d: %d steps, want %d", s, rank, column.Length, len(padded))
			}
			for step, want := range padded {
				got, ok := column.At(int64(step))
				if ok != (want != nil) || ok && got != *want {
					t.Fatalf("%+v, rank %d, step %d: %+v (%t), want %+v", s, rank, step, got, ok, want)
				}
			}
		}
	}
}

// TestPadded walks through the table of time steps of torch's interleaved schedule. Every input of
// an action was made in an earlier step, as PipelineScheduleMulti exchanges messages after each
// step.
func TestPadded(t *testing.T) {
	for _, s := range []costmodel.Schedule{
		{Kind: costmodel.Interleaved, Stages: 4, Chunks: 2, MicroBatches: 8},
		{Kind: costmodel.Interleaved, Stages: 4, Chunks: 2, MicroBatches: 16},
		{Kind: costmodel.Interleaved, Stages: 2, Chunks: 3, MicroBatches: 4},
	} {
		made := map[tabled]int{}
		for rank := range s.Stages {
			for at, a := range padded(s, rank) {
				if a != nil {
					made[tabled{int(a.Chunk*s.Stages + rank), int(a.MicroBatch), a.Kind == Backward}] = at
				}
			}
		}
		if want := 2 * s.Stages * s.Chunks * s.MicroBatches; int64(len(made)) != want {
			t.Errorf("%+v: %d actions, want %d", s, len(made), want)
		}
		last := int(s.Stages*s.Chunks) - 1
		for a, at := range made {
			needs := tabled{a.stage - 1, a.batch, false}
			if a.backward {
				needs = tabled{a.stage + 1, a.batch, true}
				if a.stage == last {
					needs = tabled{last, a.batch, false}
				}
			}
			if before, ok := made[needs]; ok && before >= at {
				t.Errorf("%+v: %+v in step %d needs %+v of step %d", s, a, at, needs, before)
			}
		}
	}
}

// TestPaddedFewer: with fewer micro-batches than ranks, a rank's table has every action, and still
// begins with as many waits as the rank's number.
func TestPaddedFewer(t *testing.T) {
	s := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 8, Chunks: 2, MicroBatches: 1}
	for rank := range s.Stages {
		table, actions := padded(s, rank), int64(0)
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
