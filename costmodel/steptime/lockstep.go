package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

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
func (s *timing) lockStep(stages []stage, schedule costmodel.Schedule, held [][]int, ranks []int) []float64 {
	k := lockStep{timing: s, stages: stages, held: held}
	longest, first, last := int64(0), int64(0), int64(math.MaxInt64)
	k.device = ranks
	if schedule.MicroBatches < schedule.Stages {
		return k.waiting(schedule)
	}
	for rank := range ranks {
		c := schedule.Column(int64(rank))
		k.columns = append(k.columns, c)
		longest, first, last = max(longest, c.Length()), max(first, c.Middle), min(last, c.End)
	}
	clocks := make([]float64, 2*len(held))
	round := k.columns[0].Round
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
	columns []costmodel.Column // by rank
	device  []int              // likewise
	step    []*action          // likewise, of the one step that is played; nil: columns say
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
	done := max(made[d], made[peer]) + k.topo.SendSeconds(d, peer, output)
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
	a, ok := k.columns[rank].At(t)
	held := k.held[k.device[rank]]
	if !ok || a.Chunk >= int64(len(held)) || a.Backward && k.t.Workload.Mode != costmodel.Train {
		return action{}, false
	}
	return action{held[a.Chunk], a.Backward}, true
}
