package costmodel

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// text writes actions as torch does, with the stage, the kind and the
// micro-batch: 0F0 2F1 2B0.
func (s Schedule) text(rank int64) string {
	var out []string
	for _, a := range s.Order(rank) {
		kind := "F"
		if a.Backward {
			kind = "B"
		}
		out = append(out, fmt.Sprintf("%d%s%d", a.Chunk*s.Stages+rank, kind, a.MicroBatch))
	}
	return strings.Join(out, " ")
}

// TestOrder: the actions of torch 2.11's classes, printed from their
// pipeline_order with the idle slots left out; 1F1B and GPipe from
// _step_microbatches.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		s    Schedule
		rank int64
		want string
	}{
		{Schedule{GPipe, 2, 1, 3}, 0, "0F0 0F1 0F2 0B0 0B1 0B2"},
		{Schedule{OneFOneB, 2, 1, 3}, 0, "0F0 0F1 0B0 0F2 0B1 0B2"},
		{Schedule{OneFOneB, 2, 1, 3}, 1, "1F0 1B0 1F1 1B1 1F2 1B2"},
		{Schedule{Interleaved, 2, 2, 4}, 0, "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3"},
		{Schedule{Interleaved, 2, 2, 4}, 1, "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"},
		{Schedule{Interleaved, 3, 2, 3}, 1, "1F0 1F1 1F2 4F0 4F1 4F2 4B0 4B1 4B2 1B0 1B1 1B2"},
		{Schedule{Interleaved, 2, 3, 6}, 0, "0F0 0F1 2F0 2F1 4F0 4F1 0F2 4B0 0F3 4B1 2F2 2B0 2F3 2B1 4F2 0B0 4F3 0B1 0F4 4B2 0F5 4B3 2F4 2B2 2F5 2B3 4F4 0B2 4F5 0B3 4B4 4B5 2B4 2B5 0B4 0B5"},
	} {
		if got := c.s.text(c.rank); got != c.want {
			t.Errorf("%+v, rank %d:\n got %s\nwant %s", c.s, c.rank, got, c.want)
		}
	}
}

// TestInFlight: the most micro-batches that Order has in flight is InFlight,
// every forward comes before its backward, and each once.
func TestInFlight(t *testing.T) {
	for _, kind := range []ScheduleKind{GPipe, OneFOneB, Interleaved} {
		for stages := range int64(5) {
			for m := range int64(12) {
				s := Schedule{kind, stages + 1, 1, m + 1}
				if kind == Interleaved {
					s.Chunks = 2 + m%2
				}
				if s.Check() != nil {
					continue
				}
				for rank := range s.Stages {
					flying, most := map[Action]bool{}, 0
					order := s.Order(rank)
					for _, a := range order {
						if f := (Action{false, a.Chunk, a.MicroBatch}); !a.Backward {
							flying[f] = true
						} else if !flying[f] {
							t.Fatalf("%+v rank %d: %+v before its forward", s, rank, a)
						} else {
							delete(flying, f)
						}
						most = max(most, len(flying))
					}
					if int64(most) != s.InFlight(rank) || int64(len(order)) != 2*s.Chunks*s.MicroBatches || len(flying) > 0 {
						t.Errorf("%+v rank %d: %d in flight, want %d; %d actions", s, rank, most, s.InFlight(rank), len(order))
					}
				}
			}
		}
	}
}

// TestScheduleCheck: what torch's constructors refuse, with the nearest that
// they take.
func TestScheduleCheck(t *testing.T) {
	for _, c := range []struct {
		s            Schedule
		below, above int64
		batch        int64
		parts        string
	}{
		{Schedule{OneFOneB, 4, 1, 2}, 0, 4, 12, "4 does"},
		{Schedule{OneFOneB, 4, 1, 3}, 0, 4, 6, "6 does"},
		{Schedule{OneFOneB, 4, 1, 1}, 0, 4, 1, "batch=4 micro_batches=4 do"},
		{Schedule{OneFOneB, 4, 1, 1}, 0, 4, 3, "batch=4 micro_batches=4 do"},
		{Schedule{OneFOneB, 4, 1, 1}, 0, 4, 4_294_967_291, "4294967291 does"}, // a prime
		{Schedule{Interleaved, 4, 2, 9}, 8, 10, 9, "3 does"},
		{Schedule{Interleaved, 4, 2, 9}, 8, 10, 720, "8 and 10 do"},
		{Schedule{Interleaved, 4, 2, 13}, 12, 15, 156, "12 and 52 do"},
	} {
		var e *ScheduleError
		if err := c.s.Check(); !errors.As(err, &e) || e.Below != c.below || e.Above != c.above || c.s.Parts(c.batch).String() != c.parts {
			t.Errorf("%+v of %d: %v (%s)", c.s, c.batch, err, c.s.Parts(c.batch))
		}
	}
	for _, s := range []Schedule{{GPipe, 4, 1, 1}, {OneFOneB, 4, 1, 4}, {Interleaved, 4, 2, 10}, {Interleaved, 4, 2, 3}} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
