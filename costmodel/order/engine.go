package order

import "github.com/devmap-dev/devmap/costmodel"

// inTurn is the kind of a device map, which has no schedule: one micro-batch after another passes
// all chunks forward and backward.
const inTurn costmodel.ScheduleKind = ""

func turns(schedule costmodel.Schedule) []Action {
	out := make([]Action, 0, 2*schedule.Chunks*schedule.MicroBatches)
	for batch := range schedule.MicroBatches {
		for chunk := range schedule.Chunks {
			out = append(out, Action{Forward, chunk, batch})
		}
		for chunk := schedule.Chunks - 1; chunk >= 0; chunk-- {
			out = append(out, Action{Backward, chunk, batch})
		}
	}
	return out
}

// Engine returns the actions of every rank in devmap's engine, in order. Rank ranks[s] runs stage s
// of the chain, and ranks are numbered in the order of their first stages. An action's chunk is its
// stage's index among the rank's stages. Without training there are only forwards.
//
// It is [Of] without actions for missing stages. An empty kind of schedule is a device map's, whose
// stages may be on any rank. Schedules with several micro-batches in flight assign stages to ranks
// in turn. With two slots per channel, no rank then waits for its own message, for any number of
// micro-batches.
func Engine(schedule costmodel.Schedule, ranks []int, train bool) [][]Action {
	owned := make([]int64, schedule.Stages)
	for _, rank := range ranks {
		owned[rank]++
	}
	out := make([][]Action, len(owned))
	for rank, chunks := range owned {
		if schedule.Kind == inTurn {
			schedule.Chunks = chunks
		}
		for _, action := range Of(schedule, int64(rank)) {
			if action.Chunk < chunks && (train || action.Kind == Forward) {
				out[rank] = append(out[rank], action)
			}
		}
	}
	return out
}

// Depths returns, for each chunk, the most micro-batches whose forward has begun and whose backward
// has not ended. A backward in halves ends with W. The engine keeps so many copies of tensors saved between the two. The phases are
// those of a schedule ([Phases]), or one with a list of actions.
func Depths(chunks int64, phases ...Phase) []int64 {
	count, most := make([]int64, chunks), make([]int64, chunks)
	second := make([]int64, chunks)
	for i := range phases {
		phases[i].Ends(func(action Action) {
			switch {
			case action.Chunk >= chunks: // a rank may have fewer chunks than others
			case action.Kind.Ends():
				count[action.Chunk]--
			case action.Kind == Forward:
				count[action.Chunk]++
				most[action.Chunk] = max(most[action.Chunk], count[action.Chunk])
			}
		}, func() { copy(second, count) }, func(times int64) {
			for chunk := range count {
				count[chunk] += times * (count[chunk] - second[chunk])
			}
		})
	}
	return most
}
