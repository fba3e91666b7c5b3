package order

import "github.com/devmap-dev/devmap/costmodel"

// The schedules that split the backward. Each is a list of actions for every rank of a few
// micro-batches; [repeated] makes phases of it for any number.

// list is the actions of a rank as it is being made. It counts the actions of each kind and chunk,
// so that each takes the next micro-batch.
type list struct {
	actions []Action
	next    [Weight + 1][2]int64
	batches int64 // micro-batches of this number or above are left out
}

func (list *list) add(kind Kind, chunk int64) {
	next := &list.next[kind][chunk]
	if *next < list.batches {
		list.actions = append(list.actions, Action{kind, chunk, *next})
	}
	*next++
}

// alive is the number of forwards whose gradients of weights have not run.
func (list *list) alive() int64 { return list.next[Forward][0] - list.next[Weight][0] }

// zbH1 is ZB-H1 (arXiv 2401.10241, §3 and figure 3): 1F1B's order with I in place of each backward.
// W waits until as many micro-batches are alive as ranks exist, the number on 1F1B's first rank.
// Once no forward is left, W follows each I: the rank would wait there in 1F1B. The first rank's W
// follow at once, and its backwards are whole.
func zbH1(schedule costmodel.Schedule, rank int64) []Action {
	out := list{batches: schedule.MicroBatches}
	one := schedule
	one.Kind = costmodel.OneFOneB
	for _, action := range Of(one, rank) {
		if action.Kind == Backward {
			out.add(Input, 0)
			if out.next[Forward][0] == schedule.MicroBatches {
				out.add(Weight, 0)
			}
			continue
		}
		if out.alive() == schedule.Stages {
			out.add(Weight, 0)
		}
		out.add(Forward, 0)
	}
	for out.alive() > 0 {
		out.add(Weight, 0)
	}
	if rank == 0 {
		return joined(out.actions)
	}
	return out.actions
}

// joined makes I and the W that follows it one backward. Nobody waits for the gradient of the first
// stage's input, and a whole backward keeps less: what W needs of each unit ends before the next.
func joined(row []Action) (out []Action) {
	for _, action := range row {
		before := Action{Input, action.Chunk, action.MicroBatch}
		if last := len(out) - 1; action.Kind == Weight && last >= 0 && out[last] == before {
			out[last].Kind = Backward
			continue
		}
		out = append(out, action)
	}
	return out
}

// zbV is torch 2.11's ScheduleZBVZeroBubble (schedules.py, _calculate_single_rank_operations).
// Chunk 0 is on the way down the V and chunk 1 on the way back. It is made for at least 2p − 1
// micro-batches, and actions of those that do not exist are left out.
func zbV(schedule costmodel.Schedule, rank int64) []Action {
	ranks := schedule.Stages
	all := max(2*ranks-1, schedule.MicroBatches)
	out := list{batches: schedule.MicroBatches}
	both := func(chunk int64) { out.add(Input, chunk); out.add(Weight, chunk) }
	for range 2*(ranks-rank) - 1 {
		out.add(Forward, 0)
	}
	for range rank {
		out.add(Forward, 1)
		out.add(Forward, 0)
	}
	for range ranks - rank {
		out.add(Forward, 1)
		both(1)
	}
	for out.next[Forward][1] < all {
		if out.next[Forward][0] < all {
			out.add(Forward, 0)
		}
		both(0)
		out.add(Forward, 1)
		both(1)
	}
	for range rank {
		out.add(Input, 0)
		out.add(Input, 1)
	}
	for range ranks - rank {
		both(0)
	}
	for _, chunk := range []int64{1, 0} {
		for out.next[Weight][chunk] < all {
			out.add(Weight, chunk)
		}
	}
	return out.actions
}
