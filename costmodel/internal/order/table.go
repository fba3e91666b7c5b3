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
func ColumnOf(s costmodel.Schedule, rank int64) Column {
	c := Column{Round: 2 * s.Chunks * perRound(s), schedule: s, rank: rank, warm: warmUp(s, rank), all: s.Chunks * s.MicroBatches}
	wait := int64(0)
	if c.warm > 0 {
		wait = max(0, s.Chunks*s.Stages+2*(s.Stages-1-rank)-c.warm-rank)
	}
	c.Middle = rank + c.warm + wait
	c.End = c.Middle + 2*(c.all-c.warm)
	return c
}

// Length is the number of steps.
func (c *Column) Length() int64 { return c.End + 2*c.warm }

// At is the action of a step; false: it waits.
func (c *Column) At(step int64) (Action, bool) {
	after := step - c.End
	switch begun := step - c.Middle; {
	case c.rank <= step && step < c.rank+c.warm:
		return forward(c.schedule, step-c.rank), true
	case begun >= 0 && step < c.End && begun%2 == 0:
		return forward(c.schedule, c.warm+begun/2), true
	case begun >= 0 && step < c.End:
		return backward(c.schedule, begun/2), true
	case 0 <= after && after < 2*c.warm && after%2 == 1:
		return backward(c.schedule, c.all-c.warm+after/2), true
	}
	return Action{}, false
}
