package costmodel

import "math"

// lockStep is when each device ends an interleaved schedule. Its ranks go
// through one table of time steps: after a step a rank sends and receives in
// one batch whatever it and its neighbours made in that step, and goes on when
// the batch is through, so that a forward beside a backward waits for it
// (torch 2.11, distributed/pipelining/schedules.py,
// PipelineScheduleMulti._step_microbatches).
//
// The table has a middle where every rank runs a forward and a backward in
// turn, its chunks a round of micro-batches each: such rounds are alike
// ([again]).
func (s *timing) lockStep(stages []stage, schedule Schedule, held [][]int, ranks []int) []float64 {
	k := lockStep{timing: s, stages: stages, held: held}
	longest, first, last := int64(0), int64(0), int64(math.MaxInt64)
	k.device = ranks
	if schedule.perRound() < schedule.Stages {
		return k.waiting(schedule)
	}
	for rank := range ranks {
		c := schedule.column(int64(rank))
		k.columns = append(k.columns, c)
		longest, first, last = max(longest, c.length()), max(first, c.middle), min(last, c.end)
	}
	clocks := make([]float64, 2*len(held))
	round := 2 * schedule.Chunks * schedule.perRound()
	rounds := max(0, last-first) / round
	k.steps(clocks, 0, min(first, longest))
	again(clocks, rounds, round*int64(len(ranks)), func(clocks []float64) { k.steps(clocks, first, first+round) })
	k.steps(clocks, first+rounds*round, longest)
	return clocks[:len(held)]
}

// lockStep is one play. Its clocks are those of the devices, then of their
// hosts.
type lockStep struct {
	*timing
	stages  []stage
	held    [][]int
	columns []column  // by rank
	device  []int     // likewise
	step    []*action // likewise, of the one step that is played; nil: columns say
}

func (k *lockStep) steps(clocks []float64, from, to int64) {
	made := make([]float64, len(k.held))
	for t := from; t < to; t++ {
		for rank, d := range k.device {
			if a, ok := k.at(rank, t); ok {
				issue, length := k.stages[a.stage].takes(a.backward)
				host := &clocks[len(k.held)+d]
				*host += issue
				clocks[d] = max(clocks[d]+length, *host)
			}
		}
		copy(made, clocks)
		for rank := range k.device {
			k.exchange(clocks, made, rank, t)
		}
	}
}

// exchange has a rank send what it made in step t, and its peer receive it.
func (k *lockStep) exchange(through, made []float64, rank int, t int64) {
	a, ok := k.at(rank, t)
	if !ok {
		return
	}
	d, to, output := k.device[rank], a.stage+1, k.stages[a.stage].output
	if a.backward {
		if to = a.stage - 1; to >= 0 {
			output = k.stages[to].output
		}
	}
	if to < 0 || to >= len(k.stages) || k.stages[to].device == d {
		return
	}
	peer := k.stages[to].device
	done := max(made[d], made[peer]) + k.send(d, peer, output)
	through[d], through[peer] = max(through[d], done), max(through[peer], done)
}

// action is a forward or a backward on a stage.
type action struct {
	stage    int
	backward bool
}

// at is what a rank does in step t, if anything: a rank may hold fewer chunks
// than others.
func (k *lockStep) at(rank int, t int64) (action, bool) {
	if k.step != nil {
		a := k.step[rank]
		if a == nil {
			return action{}, false
		}
		return *a, true
	}
	a, ok := k.columns[rank].at(t)
	held := k.held[k.device[rank]]
	if !ok || a.Chunk >= int64(len(held)) || a.Backward && k.t.Workload.Mode != Train {
		return action{}, false
	}
	return action{held[a.Chunk], a.Backward}, true
}

// column is what a rank does in each step of an interleaved schedule
// (schedules.py _get_1f1b_rank_ops): it waits as many as its number, runs its
// first forwards, waits for the first backward to come back, runs a forward and
// a backward in turn from step middle to step end, and then a backward in every
// other step.
type column struct {
	Schedule
	rank, warm, all, middle, end int64
}

func (s Schedule) column(rank int64) column {
	c := column{Schedule: s, rank: rank, warm: s.warmUp(rank), all: s.Chunks * s.MicroBatches}
	wait := int64(0)
	if c.warm > 0 {
		wait = max(0, s.Chunks*s.Stages+2*(s.Stages-1-rank)-c.warm-rank)
	}
	c.middle = rank + c.warm + wait
	c.end = c.middle + 2*(c.all-c.warm)
	return c
}

// length is the number of steps.
func (c *column) length() int64 { return c.end + 2*c.warm }

// at is the action of a step; false: it waits.
func (c *column) at(t int64) (Action, bool) {
	after := t - c.end
	switch begun := t - c.middle; {
	case c.rank <= t && t < c.rank+c.warm:
		return c.forward(t - c.rank), true
	case begun >= 0 && t < c.end && begun%2 == 0:
		return c.forward(c.warm + begun/2), true
	case begun >= 0 && t < c.end:
		return c.backward(begun / 2), true
	case 0 <= after && after < 2*c.warm && after%2 == 1:
		return c.backward(c.all - c.warm + after/2), true
	}
	return Action{}, false
}
