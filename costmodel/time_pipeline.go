package costmodel

import "cmp"

// stage is a run of units on one device.
type stage struct {
	device            int
	forward, backward float64 // seconds of a micro-batch
	issue, issueBack  float64 // the host's, likewise
	token             clock
	output            int64
}

// takes is the host's and the device's time for an action.
func (g *stage) takes(backward bool) (issue, length float64) {
	if backward {
		return g.issueBack, g.backward
	}
	return g.issue, g.forward
}

// stages are the runs of the placement, in the order of the units.
func (s *timing) stages() []stage {
	var out []stage
	for u, d := range s.place {
		if len(out) == 0 || out[len(out)-1].device != d {
			out = append(out, stage{device: d})
		}
		w, last := s.work(u), &out[len(out)-1]
		last.forward += s.seconds(d, w.Forward)
		last.backward += s.seconds(d, w.Backward)
		last.issue += s.issue(d, w.Forward)
		last.issueBack += s.issueBack(d, w.Backward)
		last.token.run(s.issue(d, w.Token), s.seconds(d, w.Token))
		last.output = w.Output
	}
	return out
}

// pipeline runs the schedule: an action starts when its device is free and
// its input is there. The step ends when the last device has updated its
// weights.
func (s *timing) pipeline() float64 {
	stages := s.stages()
	schedule, held, ranks := s.schedule(stages)
	var end []float64
	if schedule.Kind == Interleaved {
		end = s.lockStep(stages, schedule, held, ranks)
	} else {
		end = s.play(stages, s.orders(schedule, held, ranks))
	}
	slowest, token := 0., 0.
	for d := range end {
		slowest = max(slowest, end[d]+s.updateOn(d))
	}
	for i := range stages {
		token += stages[i].token.device
	}
	return slowest + s.tokens()*token
}

// schedule is the order in which the stages run, the stages that each device
// holds, and the devices in the order of their first stage.
func (s *timing) schedule(stages []stage) (_ Schedule, held [][]int, ranks []int) {
	held = make([][]int, len(s.topo.Devices))
	chunks := 1
	for i := range stages {
		d := stages[i].device
		if len(held[d]) == 0 {
			ranks = append(ranks, d)
		}
		held[d] = append(held[d], i)
		chunks = max(chunks, len(held[d]))
	}
	w := &s.t.Workload
	schedule := Schedule{cmp.Or(w.Schedule, OneFOneB), int64(len(ranks)), int64(chunks), max(1, w.MicroBatches)}
	if chunks > 1 {
		schedule.Kind = Interleaved
	}
	return schedule, held, ranks
}

// orders are the actions of each device in the order of its schedule; a
// device without a stage has none.
func (s *timing) orders(schedule Schedule, held [][]int, ranks []int) [][]action {
	w := &s.t.Workload
	out := make([][]action, len(held))
	for rank, d := range ranks {
		for _, a := range schedule.Order(int64(rank)) {
			if a.Chunk < int64(len(held[d])) && (w.Mode == Train || !a.Backward) {
				out[d] = append(out[d], action{held[d][a.Chunk], int(a.MicroBatch), a.Backward})
			}
		}
	}
	return out
}

func (s *timing) updateOn(d int) float64 {
	var bytes float64
	for u, on := range s.place {
		if on == d {
			bytes += s.work(u).Update
		}
	}
	return s.updates(d, bytes)
}

// action is one forward or backward of a micro-batch on a stage.
type action struct {
	stage, batch int
	backward     bool
}

// play runs every device's actions in order and is when each device ends.
// Hosts do not wait for what a stage receives: streams do.
func (s *timing) play(stages []stage, orders [][]action) []float64 {
	done := map[action]float64{}
	end, host := make([]float64, len(orders)), make([]float64, len(orders))
	at := make([]int, len(orders))
	for moved := true; moved; {
		moved = false
		for d := range orders {
			for at[d] < len(orders[d]) {
				a := orders[d][at[d]]
				ready, ok := s.ready(stages, done, a)
				if !ok {
					break
				}
				issue, length := stages[a.stage].takes(a.backward)
				host[d] += issue
				end[d] = max(max(end[d], ready)+length, host[d])
				done[a] = end[d]
				at[d]++
				moved = true
			}
		}
	}
	return end
}

// ready is when an action's input arrives; false while what makes it has not
// run.
func (s *timing) ready(stages []stage, done map[action]float64, a action) (float64, bool) {
	from := action{a.stage - 1, a.batch, false}
	var output int64
	switch {
	case a.backward && a.stage == len(stages)-1:
		from = action{a.stage, a.batch, false}
	case a.backward:
		from = action{a.stage + 1, a.batch, true}
		output = stages[a.stage].output
	case a.stage == 0:
		return 0, true
	default:
		output = stages[a.stage-1].output
	}
	t, ok := done[from]
	return t + s.send(stages[from.stage].device, stages[a.stage].device, output), ok
}
