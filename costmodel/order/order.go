// Package order is what each rank of a pipeline does and when: torch's orders of
// actions (torch 2.11, distributed/pipelining/schedules.py), read in full ([Of]),
// as a few phases for any number of micro-batches ([Phases]), and as the table of
// time steps of an interleaved schedule ([ColumnOf]).
package order

import "github.com/devmap-dev/devmap/costmodel"

// Action is a forward or a backward of one micro-batch through one chunk.
type Action struct {
	Backward          bool
	Chunk, MicroBatch int64
}

// perRound is ScheduleInterleaved1F1B's microbatches_per_round, of its
// number_of_rounds.
func perRound(schedule costmodel.Schedule) int64 {
	return schedule.MicroBatches / max(1, schedule.MicroBatches/schedule.Stages)
}

// InFlight is the number of forwards that a rank runs before its first
// backward has ended: what it keeps activations of at once, counted in
// chunks. For 1F1B it is min(m, p − rank) (Narayanan et al., SC 2021, §2.2.1;
// schedules.py Schedule1F1B._step_microbatches, warmup_chunks).
func InFlight(schedule costmodel.Schedule, rank int64) int64 {
	switch schedule.Kind {
	case costmodel.OneFOneB:
		return min(schedule.MicroBatches, schedule.Stages-rank)
	case costmodel.Interleaved:
		return min(warmUp(schedule, rank)+1, schedule.Chunks*schedule.MicroBatches)
	case costmodel.GPipe:
		return schedule.MicroBatches
	}
	return 0 // of an unknown kind no rank runs anything ([costmodel.Schedule.Check])
}

// warmUp is schedules.py _get_warmup_ops with its multiply_factor of 2.
func warmUp(schedule costmodel.Schedule, rank int64) int64 {
	return min((schedule.Chunks-1)*perRound(schedule)+2*(schedule.Stages-1-rank), schedule.Chunks*schedule.MicroBatches)
}

// Of is what a rank does, in order.
func Of(schedule costmodel.Schedule, rank int64) []Action {
	if schedule.Kind == costmodel.Interleaved {
		return interleaved(schedule, rank)
	}
	// Both run forwards up to InFlight, then backwards and forwards in turn:
	// GPipe has no forwards left by then.
	warm := InFlight(schedule, rank)
	if warm == 0 {
		return nil
	}
	out := make([]Action, 0, 2*schedule.MicroBatches)
	for i := range warm {
		out = append(out, Action{false, 0, i})
	}
	for i := range schedule.MicroBatches {
		out = append(out, Action{true, 0, i})
		if warm+i < schedule.MicroBatches {
			out = append(out, Action{false, 0, warm + i})
		}
	}
	return out
}

// interleaved is schedules.py _get_1f1b_rank_ops, with
// ScheduleInterleaved1F1B's forward_stage_index and backward_stage_index: the
// chunks take turns, a round of micro-batches each.
func interleaved(schedule costmodel.Schedule, rank int64) []Action {
	warm, all := warmUp(schedule, rank), schedule.Chunks*schedule.MicroBatches
	forwards, backwards := make([]int64, schedule.Chunks), make([]int64, schedule.Chunks)
	out := make([]Action, 0, 2*all)
	for op := range warm + all {
		if op < all {
			c := op / perRound(schedule) % schedule.Chunks
			out = append(out, Action{false, c, forwards[c]})
			forwards[c]++
		}
		if op >= warm {
			c := schedule.Chunks - 1 - (op-warm)/perRound(schedule)%schedule.Chunks
			out = append(out, Action{true, c, backwards[c]})
			backwards[c]++
		}
	}
	return out
}
