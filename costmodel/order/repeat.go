package order

import (
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
)

// enough is a number of micro-batches with which all ranks of a split schedule are in their steady
// state at once. Every further one only repeats a block once more on each rank.
func enough(schedule costmodel.Schedule) int64 { return 6*schedule.Stages + 12 }

// made keeps the phases of split schedules, which are costly to make and never change.
var made sync.Map // costmodel.Schedule → [][]Phase, by rank

// splitPhases returns the phases of a rank of a schedule that splits the backward.
func splitPhases(schedule costmodel.Schedule, rank int64) []Phase {
	short := schedule
	short.AnyMicroBatches, short.WholeRounds = false, false
	short.MicroBatches = min(schedule.MicroBatches, enough(schedule))
	all, ok := made.Load(short)
	if !ok {
		all, _ = made.LoadOrStore(short, split(short))
	}
	ranks, _ := all.([][]Phase)
	if rank >= int64(len(ranks)) {
		return nil
	}
	return longer(ranks[rank], schedule.MicroBatches-short.MicroBatches)
}

// split makes the phases of every rank.
func split(schedule costmodel.Schedule) [][]Phase {
	rows := make([][]Action, schedule.Stages)
	switch schedule.Kind {
	case costmodel.ZBH1, costmodel.ZBV:
		for rank := range rows {
			if schedule.Kind == costmodel.ZBH1 {
				rows[rank] = zbH1(schedule, int64(rank))
			} else {
				rows[rank] = zbV(schedule, int64(rank))
			}
		}
	case costmodel.VHalf, costmodel.VMin:
		rows = squeeze(schedule, patternOf(schedule).rows(schedule.MicroBatches))
	case costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, costmodel.AutoSchedule: // none splits a backward
	}
	out := make([][]Phase, len(rows))
	for rank := range rows {
		out[rank] = repeated(rows[rank], interval)
	}
	return out
}

// repeated finds the longest stretch of a row that one block of at most so many actions makes up,
// with the next micro-batch each time. It returns the actions before, the block, and those after.
func repeated(row []Action, most int) []Phase {
	start, length, end := 0, 0, 0
	for size := 2; size <= most; size++ {
		for from, at := 0, 0; at+size <= len(row); at++ {
			next := row[at]
			next.MicroBatch++
			if at+size < len(row) && row[at+size] == next {
				continue
			}
			if to := at + size; to-from >= 2*size && to-from > end-start {
				start, length, end = from, size, to
			}
			from = at + 1
		}
	}
	if length == 0 {
		return phases(Phase{row, 1, 0})
	}
	times := (end - start) / length
	end = start + times*length
	return phases(Phase{row[:start], 1, 0}, Phase{row[start : start+length], int64(times), 1}, Phase{row[end:], 1, 0})
}

// longer repeats the block of phases so many times more.
func longer(short []Phase, more int64) []Phase {
	if more == 0 {
		return short
	}
	out := make([]Phase, len(short))
	after := false
	for i, phase := range short {
		out[i] = phase
		switch {
		case after:
			out[i].Actions = shifted(phase.Actions, more)
		case phase.Advance > 0:
			out[i].Times, after = phase.Times+more, true
		}
	}
	return out
}

// shifted returns the actions with later micro-batches.
func shifted(actions []Action, by int64) []Action {
	out := make([]Action, len(actions))
	for i, action := range actions {
		action.MicroBatch += by
		out[i] = action
	}
	return out
}

// expanded returns the actions of phases, in order.
func expanded(phases []Phase) (out []Action) {
	for _, phase := range phases {
		for time := range phase.Times {
			out = append(out, shifted(phase.Actions, time*phase.Advance)...)
		}
	}
	return out
}
