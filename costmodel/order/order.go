// Package order lists the actions of each rank of a pipeline, in torch's orders (torch 2.11,
// distributed/pipelining/schedules.py). It also has schedules that torch lacks: ZB-H1, V-Half and
// V-Min. [Of] lists all actions. [Phases] gives a few phases for any number of micro-batches, and
// [ColumnOf] the table of time steps of an interleaved schedule.
//
// devmap's own engine uses these orders if torch has one with rounds of as many micro-batches as
// stages. It takes any number of micro-batches ([costmodel.Schedule.AnyMicroBatches]), and also
// runs device maps ([Engine]).
package order

import "github.com/devmap-dev/devmap/costmodel"

// perRound is ScheduleInterleaved1F1B's microbatches_per_round, from its number_of_rounds. If the
// schedule takes any number of micro-batches, it is the number of stages.
func perRound(schedule costmodel.Schedule) int64 {
	if schedule.AnyMicroBatches {
		return max(1, schedule.Stages)
	}
	return schedule.MicroBatches / max(1, schedule.MicroBatches/schedule.Stages)
}

// whole returns the schedule with its last round filled up. A shorter round runs the existing
// actions of a whole one, in its order. An order without some of its micro-batches is a valid order
// of the rest, and none of these waits longer than before. Closing the gaps, as if the last round's
// turns came sooner, would make ranks wait for each other in a cycle. Megatron-LM refuses a
// remainder between 0 and the number of stages (core/pipeline_parallel/schedules.py).
func whole(schedule costmodel.Schedule) costmodel.Schedule {
	per := perRound(schedule)
	schedule.MicroBatches = (schedule.MicroBatches + per - 1) / per * per
	return schedule
}

// inFlight returns the number of forwards that a rank runs before its first backward has ended: the
// chunks whose activations it keeps at once. For 1F1B it is min(m, p − rank) (Narayanan et al., SC
// 2021, §2.2.1; schedules.py Schedule1F1B._step_microbatches, warmup_chunks).
func inFlight(schedule costmodel.Schedule, rank int64) int64 {
	switch schedule.Kind {
	case costmodel.OneFOneB:
		return min(schedule.MicroBatches, schedule.Stages-rank)
	case costmodel.Interleaved:
		filled, count := whole(schedule), int64(0)
		for op := range min(warmUp(filled, rank)+1, filled.Chunks*filled.MicroBatches) {
			if forward(filled, op).MicroBatch < schedule.MicroBatches {
				count++
			}
		}
		return count
	case costmodel.GPipe:
		return schedule.MicroBatches
	case inTurn:
		return schedule.Chunks
	case costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin: // [Depths] counts these
	case costmodel.AutoSchedule: // the planner has not chosen yet
	}
	return 0 // ranks run nothing for an unknown kind ([costmodel.Schedule.Check])
}

// warmUp is schedules.py _get_warmup_ops with its multiply_factor of 2.
func warmUp(schedule costmodel.Schedule, rank int64) int64 {
	return min((schedule.Chunks-1)*perRound(schedule)+2*(schedule.Stages-1-rank), schedule.Chunks*schedule.MicroBatches)
}

// Of returns the actions of a rank, in order.
func Of(schedule costmodel.Schedule, rank int64) []Action {
	switch schedule.Kind {
	case costmodel.Interleaved:
		return interleaved(schedule, rank)
	case inTurn:
		return turns(schedule)
	case costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin:
		return expanded(splitPhases(schedule, rank))
	case costmodel.OneFOneB, costmodel.GPipe:
	case costmodel.AutoSchedule: // inFlight is 0
	}
	if schedule.Kind.OwnOrder() {
		return expanded(given(schedule, rank))
	}
	// Both run inFlight forwards, then alternate backwards and forwards: GPipe has no forwards left
	// by then.
	warm := inFlight(schedule, rank)
	if warm == 0 {
		return nil
	}
	out := make([]Action, 0, 2*schedule.MicroBatches)
	for i := range warm {
		out = append(out, Action{Forward, 0, i})
	}
	for i := range schedule.MicroBatches {
		out = append(out, Action{Backward, 0, i})
		if warm+i < schedule.MicroBatches {
			out = append(out, Action{Forward, 0, warm + i})
		}
	}
	return out
}

// interleaved is schedules.py _get_1f1b_rank_ops: the chunks alternate, with one round of
// micro-batches each.
func interleaved(schedule costmodel.Schedule, rank int64) []Action {
	filled := whole(schedule)
	warm, all := warmUp(filled, rank), filled.Chunks*filled.MicroBatches
	out := make([]Action, 0, 2*schedule.Chunks*schedule.MicroBatches)
	add := func(action Action) {
		if action.MicroBatch < schedule.MicroBatches {
			out = append(out, action)
		}
	}
	for op := range warm + all {
		if op < all {
			add(forward(filled, op))
		}
		if op >= warm {
			add(backward(filled, op-warm))
		}
	}
	return out
}
