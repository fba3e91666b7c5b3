package order

import "github.com/devmap-dev/devmap/costmodel"

// Column is what a rank does in each step of the table of time steps that
// torch makes of an interleaved schedule (torch 2.11,
// distributed/pipelining/schedules.py, _get_1f1b_rank_ops): it waits as many
// as its number, runs its first forwards, waits for the first backward to come
// back, runs a forward and a backward in turn from step Middle to step End, and
// then a backward in every other step.
type Column struct {
	// Middle and End bound the steps in which every Round of them is like the
	// one before: each chunk has its round of micro-batches.
	Middle, End, Round int64

	schedule        costmodel.Schedule
	rank, warm, all int64
}

// ColumnOf is a rank's part of the table.
func ColumnOf(schedule costmodel.Schedule, rank int64) Column {
	column := Column{Round: 2 * schedule.Chunks * perRound(schedule), schedule: schedule, rank: rank, warm: warmUp(schedule, rank), all: schedule.Chunks * schedule.MicroBatches}
	wait := int64(0)
	if column.warm > 0 {
		wait = max(0, schedule.Chunks*schedule.Stages+2*(schedule.Stages-1-rank)-column.warm-rank)
	}
	column.Middle = rank + column.warm + wait
	column.End = column.Middle + 2*(column.all-column.warm)
	return column
}

// Length is the number of steps.
func (column *Column) Length() int64 { return column.End + 2*column.warm }

// At is the action of a step; false: it waits.
func (column *Column) At(step int64) (Action, bool) {
	after := step - column.End
	switch begun := step - column.Middle; {
	case column.rank <= step && step < column.rank+column.warm:
		return forward(column.schedule, step-column.rank), true
	case begun >= 0 && step < column.End && begun%2 == 0:
		return forward(column.schedule, column.warm+begun/2), true
	case begun >= 0 && step < column.End:
		return backward(column.schedule, begun/2), true
	case 0 <= after && after < 2*column.warm && after%2 == 1:
		return backward(column.schedule, column.all-column.warm+after/2), true
	}
	return Action{}, false
}
