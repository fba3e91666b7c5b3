package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// text returns actions in torch's notation of stage, kind and micro-batch: 0F0 2F1 2B0.
func text(s costmodel.Schedule, rank int64) string {
	var out []string
	for _, a := range Of(s, rank) {
		kind := "F"
		if a.Kind == Backward {
			kind = "B"
		}
		out = append(out, fmt.Sprintf("%d%s%d", a.Chunk*s.Stages+rank, kind, a.MicroBatch))
	}
	return strings.Join(out, " ")
}

// TestOrder: the wanted actions are the pipeline_order of torch 2.11's classes without idle slots.
// 1F1B and GPipe are from _step_microbatches.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		s    costmodel.Schedule
		rank int64
		want string
	}{
		{costmodel.Schedule{Kind: costmodel.GPipe, Stages: 2, Chunks: 1, MicroBatches: 3}, 0, "0F0 0F1 0F2 0B0 0B1 0B2"},
		{costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 3}, 0, "0F0 0F1 0B0 0F2 0B1 0B2"},
		{costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 3}, 1, "1F0 1B0 1F1 1B1 1F2 1B2"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 2, Chunks: 2, MicroBatches: 4}, 0, "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 2, Chunks: 2, MicroBatches: 4}, 1, "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 3, Chunks: 2, MicroBatches: 3}, 1, "1F0 1F1 1F2 4F0 4F1 4F2 4B0 4B1 4B2 1B0 1B1 1B2"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 2, Chunks: 3, MicroBatches: 6}, 0, "0F0 0F1 2F0 2F1 4F0 4F1 0F2 4B0 0F3 4B1 2F2 2B0 2F3 2B1 4F2 0B0 4F3 0B1 0F4 4B2 0F5 4B3 2F4 2B2 2F5 2B3 4F4 0B2 4F5 0B3 4B4 4B5 2B4 2B5 0B4 0B5"},
	} {
		if got := text(c.s, c.rank); got != c.want {
			t.Errorf("%+v, rank %d:\n got %s\nwant %s", c.s, c.rank, got, c.want)
		}
	}
}

// TestInFlight: inFlight equals the most micro-batches that the order has in flight. Every forward
// is before its backward, and each runs once.
func TestInFlight(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved} {
		for stages := range int64(5) {
			for m := range int64(12) {
				s := costmodel.Schedule{Kind: kind, Stages: stages + 1, Chunks: 1, MicroBatches: m + 1}
				if kind == costmodel.Interleaved {
					s.Chunks = 2 + m%2
				}
				s.AnyMicroBatches = s.Check() != nil
				for rank := range s.Stages {
					flying, most := map[Action]bool{}, 0
					order := Of(s, rank)
					for _, a := range order {
						if f := (Action{Forward, a.Chunk, a.MicroBatch}); a.Kind == Forward {
							flying[f] = true
						} else if !flying[f] {
							t.Fatalf("%+v rank %d: %+v before its forward", s, rank, a)
						} else {
							delete(flying, f)
						}
						most = max(most, len(flying))
					}
					if int64(most) != inFlight(s, rank) || int64(len(order)) != 2*s.Chunks*s.MicroBatches || len(flying) > 0 {
						t.Errorf("%+v rank %d: %d in flight, want %d; %d actions", s, rank, most, inFlight(s, rank), len(order))
					}
				}
			}
		}
	}
}

// TestUnknownKind: a schedule of an unknown kind has no actions, not GPipe's.
func TestUnknownKind(t *testing.T) {
	schedule := costmodel.Schedule{Kind: "dual", Stages: 2, Chunks: 1, MicroBatches: 4}
	if actions, phases := Of(schedule, 0), Phases(schedule, 0); len(actions) > 0 || len(phases) > 0 {
		t.Errorf("%v, %v", actions, phases)
	}
}
