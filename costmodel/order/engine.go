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

// Depth is how many copies of a chunk's tensors the engine keeps: the most micro-batches at once in
// each part of their way.
type Depth struct {
	// Saved is from the start of the forward to the end of the gradient of the input. Late continues to
	// the end of the gradients of the weights.
	Saved, Late int64
	// Pending is from the start of the gradient of the input to the end of the weights' gradients.
	Pending int64
	// Whole is 1 if a backward of the chunk is one action, which makes both gradients unit by unit.
	Whole int64
}

// Depths returns the depth of each chunk. The phases are those of a schedule ([Phases]), or one
// with a list of actions.
func Depths(chunks int64, phases ...Phase) []Depth {
	count, most := make([]Depth, chunks), make([]Depth, chunks)
	second := make([]Depth, chunks)
	for i := range phases {
		phases[i].Ends(func(action Action) {
			if action.Chunk < chunks { // a rank may have fewer chunks than others
				count[action.Chunk].pass(action.Kind, &most[action.Chunk])
			}
		}, func() { copy(second, count) }, func(times int64) {
			for chunk := range count {
				now, before := &count[chunk], second[chunk]
				now.Saved += times * (now.Saved - before.Saved)
				now.Late += times * (now.Late - before.Late)
				now.Pending += times * (now.Pending - before.Pending)
			}
		})
	}
	return most
}

// pass counts an action.
func (now *Depth) pass(kind Kind, most *Depth) {
	switch kind {
	case Forward:
		now.Saved++
		now.Late++
	case Input:
		now.Pending++
	case Backward:
		most.Whole = 1
	case Weight:
	}
	most.Saved, most.Late, most.Pending = max(most.Saved, now.Saved), max(most.Late, now.Late), max(most.Pending, now.Pending)
	if kind.Sends() {
		now.Saved--
	}
	if kind.Ends() {
		now.Late--
	}
	if kind == Weight {
		now.Pending--
	}
}
