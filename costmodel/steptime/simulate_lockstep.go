package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// simulateLockStep simulates an interleaved schedule. All ranks follow one table of time steps.
// After a step a rank exchanges all its messages of that step in one batch and waits for it. So a
// forward next to a backward waits for the backward (torch 2.11,
// distributed/pipelining/schedules.py, PipelineScheduleMulti._step_microbatches).
//
// Every rank alternates forwards and backwards in the table's middle, each chunk a round of
// micro-batches. Such rounds are equal ([repeat]).
func simulateLockStep(clocks []deviceClock, schedule costmodel.Schedule, train bool, stages []Stage) {
	lock := lockStep{train: train, stages: stages, chunks: make([][]int, schedule.Stages), made: make([]deviceClock, schedule.Stages), now: make([]*action, schedule.Stages)}
	for i := range stages {
		lock.chunks[stages[i].Rank] = append(lock.chunks[stages[i].Rank], i)
	}
	if schedule.MicroBatches < schedule.Stages {
		lock.inputsAwaited(clocks, schedule)
		return
	}
	longest, first, last := int64(0), int64(0), int64(math.MaxInt64)
	for rank := range schedule.Stages {
		column := order.ColumnOf(schedule, rank)
		lock.columns = append(lock.columns, column)
		longest, first, last = max(longest, column.Length), max(first, column.Middle), min(last, column.End)
	}
	round := lock.columns[0].Round
	rounds := max(0, last-first) / round
	lock.steps(clocks, 0, min(first, longest))
	repeat(clocks, rounds, round*schedule.Stages, func(clocks []deviceClock) { lock.steps(clocks, first, first+round) })
	lock.steps(clocks, first+rounds*round, longest)
}

// lockStep is one simulation.
type lockStep struct {
	train   bool
	stages  []Stage
	chunks  [][]int        // by rank, the stages of its chunks
	columns []order.Column // by rank
	now     []*action      // likewise, of the step that is simulated; nil: it waits
	made    []deviceClock  // likewise, before what was made is exchanged
}

// action is a forward or a backward of a micro-batch on a stage.
type action struct {
	stage    int
	backward bool
	batch    int64
}

// actionOf is a rank's action on the stage that it holds; false if it holds
// fewer chunks than others, and for backwards in inference.
func (lock *lockStep) actionOf(rank int, a order.Action) (action, bool) {
	if chunks := lock.chunks[rank]; a.Chunk < int64(len(chunks)) && (lock.train || a.Kind == order.Forward) {
		return action{chunks[a.Chunk], a.Kind == order.Backward, a.MicroBatch}, true
	}
	return action{}, false
}

// steps simulates rows of the table.
func (lock *lockStep) steps(clocks []deviceClock, from, to int64) {
	actions := make([]action, len(clocks))
	for turn := from; turn < to; turn++ {
		for rank := range lock.columns {
			lock.now[rank] = nil
			if a, ok := lock.columns[rank].At(turn); ok {
				if actions[rank], ok = lock.actionOf(rank, a); ok {
					lock.now[rank] = &actions[rank]
				}
			}
		}
		lock.step(clocks)
	}
}

// step simulates the row of now.
func (lock *lockStep) step(clocks []deviceClock) {
	for rank, a := range lock.now {
		if a != nil {
			clocks[rank].run(lock.stages[a.stage].takes(a.backward))
		}
	}
	copy(lock.made, clocks)
	for rank, a := range lock.now {
		if a != nil {
			lock.exchange(clocks, rank, a)
		}
	}
}

// exchange sends a rank's result to its peer.
func (lock *lockStep) exchange(clocks []deviceClock, rank int, a *action) {
	to, message := a.stage+1, lock.stages[a.stage].To
	if a.backward {
		if to = a.stage - 1; to >= 0 {
			message = lock.stages[to].From
		}
	}
	if to < 0 || to >= len(lock.stages) || lock.stages[to].Rank == rank {
		return
	}
	peer := lock.stages[to].Rank
	through := max(lock.made[rank].Device, lock.made[peer].Device) + message
	clocks[rank].await(through)
	clocks[peer].await(through)
}

// inputsAwaited simulates a schedule with fewer micro-batches in a round than ranks. A rank then
// reaches its next chunk before the input does, and waits
// (_PipelineScheduleRuntime._perform_action). Each rank runs one action a step, as soon as earlier
// steps made its inputs. There are few steps, as there are few micro-batches.
func (lock *lockStep) inputsAwaited(clocks []deviceClock, schedule costmodel.Schedule) {
	orders := make([][]action, len(clocks))
	for rank := range orders {
		for _, a := range order.Of(schedule, int64(rank)) {
			if own, ok := lock.actionOf(rank, a); ok {
				orders[rank] = append(orders[rank], own)
			}
		}
	}
	done := map[action]bool{}
	for {
		ran := false
		for rank, order := range orders {
			lock.now[rank] = nil
			if len(order) > 0 && lock.ready(done, order[0]) {
				lock.now[rank], orders[rank], ran = &order[0], order[1:], true
			}
		}
		if !ran {
			return
		}
		lock.step(clocks)
		for _, a := range lock.now {
			if a != nil {
				done[*a] = true
			}
		}
	}
}

// ready reports that what an action needs was made.
func (lock *lockStep) ready(done map[action]bool, a action) bool {
	switch {
	case a.backward && a.stage == len(lock.stages)-1:
		return done[action{a.stage, false, a.batch}]
	case a.backward:
		return done[action{a.stage + 1, true, a.batch}]
	}
	return a.stage == 0 || done[action{a.stage - 1, false, a.batch}]
}
