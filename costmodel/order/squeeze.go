package order

import "github.com/devmap-dev/devmap/costmodel"

// clock is when each action of a schedule's stages ends, in units of time. A forward waits for that
// of the stage before, I for the forward and the I of the stage after, W for I. It is 0 for actions
// that have not run. Only the first stage may run whole backwards, and no action waits for these.
type clock struct {
	schedule costmodel.Schedule
	ends     [Weight + 1][]int64 // by stage and micro-batch
}

func newClock(schedule costmodel.Schedule) *clock {
	clock := &clock{schedule: schedule}
	for kind := range clock.ends {
		clock.ends[kind] = make([]int64, schedule.Stages*schedule.Chunks*schedule.MicroBatches)
	}
	return clock
}

func (clock *clock) of(kind Kind, stage, batch int64) *int64 {
	return &clock.ends[kind][stage*clock.schedule.MicroBatches+batch]
}

// ready returns when an action can start; false if what it needs has not run.
func (clock *clock) ready(rank int64, action Action) (at int64, ok bool) {
	stage, last := clock.schedule.Stage(rank, action.Chunk), clock.schedule.Stages*clock.schedule.Chunks-1
	ok = true
	need := func(kind Kind, stage int64) {
		end := *clock.of(kind, stage, action.MicroBatch)
		at, ok = max(at, end), ok && end > 0
	}
	switch action.Kind {
	case Forward:
		if stage > 0 {
			need(Forward, stage-1)
		}
	case Backward, Input:
		need(Forward, stage)
		if stage < last {
			need(Input, stage+1)
		}
	case Weight:
		need(Input, stage)
	}
	return at, ok
}

// span returns how long the rows of all ranks take if F, I and W take one unit each, messages take
// none, and each rank runs its row in order. It is −1 if the ranks wait for each other.
func span(schedule costmodel.Schedule, rows [][]Action) (most int64) {
	clock, next, now := newClock(schedule), make([]int, len(rows)), make([]int64, len(rows))
	for moved := true; moved; {
		moved = false
		for rank := range rows {
			for next[rank] < len(rows[rank]) {
				action := rows[rank][next[rank]]
				at, ok := clock.ready(int64(rank), action)
				if !ok {
					break
				}
				now[rank] = max(now[rank], at) + 1
				if action.Kind == Backward {
					now[rank]++
				}
				*clock.of(action.Kind, schedule.Stage(int64(rank), action.Chunk), action.MicroBatch) = now[rank]
				next[rank]++
				moved = true
			}
		}
	}
	for rank := range rows {
		if next[rank] < len(rows[rank]) {
			return -1
		}
		most = max(most, now[rank])
	}
	return most
}

// squeezer runs the rows of all ranks unit by unit, and moves W.
type squeezer struct {
	*clock
	rows    [][]Action // not run yet
	out     [][]Action
	pending [][]Action // W of each rank whose I has run
	now     int64
}

// squeeze compresses the start and the end of a repeated pattern (arXiv 2405.15362, §3). F and I
// keep their order. A rank that would wait runs a W whose I has run. Once a rank has no forward
// left, an I that is ready runs before W. A W never runs later than in the pattern while a forward
// follows, so no more chunks are alive.
func squeeze(schedule costmodel.Schedule, rows [][]Action) [][]Action {
	work := &squeezer{clock: newClock(schedule), rows: rows, out: make([][]Action, len(rows)), pending: make([][]Action, len(rows))}
	for left := true; left; work.now++ {
		left = false
		var chosen []Action
		var ranks []int
		for rank := range rows {
			left = left || len(work.rows[rank]) > 0
			if action, ok := work.choose(rank); ok {
				chosen, ranks = append(chosen, action), append(ranks, rank)
			}
		}
		for i, rank := range ranks {
			work.run(rank, chosen[i])
		}
	}
	return work.out
}

func (work *squeezer) runs(rank int, action Action) bool {
	at, ok := work.ready(int64(rank), action)
	return ok && at <= work.now
}

func (work *squeezer) choose(rank int) (Action, bool) {
	row := work.rows[rank]
	if len(row) == 0 {
		return Action{}, false
	}
	forwards, input := false, -1
	for i := range row {
		forwards = forwards || row[i].Kind == Forward
		if row[i].Kind == Input && input < 0 {
			input = i
		}
		if forwards || input >= 0 && row[0].Kind != Weight {
			break
		}
	}
	if row[0].Kind == Weight && !forwards && input >= 0 && work.runs(rank, row[input]) {
		return row[input], true
	}
	if work.runs(rank, row[0]) {
		return row[0], true
	}
	if len(work.pending[rank]) > 0 {
		return work.pending[rank][0], true
	}
	return Action{}, false
}

func (work *squeezer) run(rank int, action Action) {
	*work.of(action.Kind, work.schedule.Stage(int64(rank), action.Chunk), action.MicroBatch) = work.now + 1
	work.out[rank] = append(work.out[rank], action)
	work.rows[rank] = without(work.rows[rank], action)
	switch action.Kind {
	case Input:
		work.pending[rank] = append(work.pending[rank], Action{Weight, action.Chunk, action.MicroBatch})
	case Weight:
		work.pending[rank] = without(work.pending[rank], action)
	case Forward, Backward:
	}
}

// without removes an action, which is near the start, in place.
func without(row []Action, action Action) []Action {
	for i := range row {
		if row[i] == action {
			copy(row[1:i+1], row[:i])
			return row[1:]
		}
	}
	return row
}
