package costmodel

// lockStep is when each device ends an interleaved schedule. Its ranks go
// through one table of time steps: after a step a rank sends and receives in
// one batch whatever it and its neighbours made in that step, and goes on when
// the batch is through, so that a forward beside a backward waits for it
// (torch 2.11, distributed/pipelining/schedules.py,
// PipelineScheduleMulti._step_microbatches).
func (s *timing) lockStep(stages []stage, schedule Schedule, held [][]int, ranks []int) []float64 {
	steps := make([][]*action, len(held))
	longest := 0
	for rank, d := range ranks {
		steps[d] = s.steps(schedule, held[d], int64(rank))
		longest = max(longest, len(steps[d]))
	}
	end, host := make([]float64, len(held)), make([]float64, len(held))
	for t := range longest {
		for _, d := range ranks {
			if t < len(steps[d]) && steps[d][t] != nil {
				a := steps[d][t]
				issue, length := stages[a.stage].takes(a.backward)
				host[d] += issue
				end[d] = max(end[d]+length, host[d])
			}
		}
		end = s.exchange(stages, steps, t, end)
	}
	return end
}

// exchange is when each device has sent and received what was made in step t.
func (s *timing) exchange(stages []stage, steps [][]*action, t int, made []float64) []float64 {
	through := append([]float64(nil), made...)
	for d := range steps {
		if t >= len(steps[d]) || steps[d][t] == nil {
			continue
		}
		a := steps[d][t]
		to, output := a.stage+1, stages[a.stage].output
		if a.backward {
			if to = a.stage - 1; to >= 0 {
				output = stages[to].output
			}
		}
		if to < 0 || to >= len(stages) || stages[to].device == d {
			continue
		}
		peer := stages[to].device
		done := max(made[d], made[peer]) + s.send(d, peer, output)
		through[d], through[peer] = max(through[d], done), max(through[peer], done)
	}
	return through
}

// steps is a rank's column of the table, nil where it has nothing to do.
func (s *timing) steps(schedule Schedule, held []int, rank int64) []*action {
	var out []*action
	for _, a := range schedule.padded(rank) {
		skip := a == nil || a.Chunk >= int64(len(held)) || a.Backward && s.t.Workload.Mode != Train
		if skip {
			out = append(out, nil)
			continue
		}
		out = append(out, &action{held[a.Chunk], int(a.MicroBatch), a.Backward})
	}
	return out
}

// padded is the order of an interleaved schedule with the steps in which a
// rank waits, nil (schedules.py _get_1f1b_rank_ops: as many as its rank, then
// for the first backward to come back, then one before each backward of the
// end).
func (s Schedule) padded(rank int64) []*Action {
	warm, all := s.warmUp(rank), s.Chunks*s.MicroBatches
	order := s.interleaved(rank)
	out := make([]*Action, rank, rank+3*all)
	for i := range order {
		if int64(i) > 2*all-warm-1 {
			out = append(out, nil)
		}
		out = append(out, &order[i])
		if int64(i) == warm-1 {
			out = append(out, make([]*Action, max(0, s.Chunks*s.Stages+2*(s.Stages-1-rank)-warm-rank))...)
		}
	}
	return out
}
