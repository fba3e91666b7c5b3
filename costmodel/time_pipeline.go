package costmodel

import "cmp"

// stage is a run of units on one device.
type stage struct {
	device            int
	forward, backward float64 // seconds of a micro-batch
	token             float64
	output            int64
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
		last.token += s.seconds(d, w.Token)
		last.output = w.Output
	}
	return out
}

// pipeline runs the schedule: an action starts when its device is free and
// its input is there. The step ends when the last device has updated its
// weights.
func (s *timing) pipeline() float64 {
	stages := s.stages()
	end := s.play(stages, s.orders(stages))
	slowest, token := 0., 0.
	for d := range end {
		slowest = max(slowest, end[d]+s.updateOn(d))
	}
	for i := range stages {
		token += stages[i].token
	}
	return slowest + s.tokens()*token
}

// orders are the actions of each device in the order of its schedule; a
// device without a stage has none.
func (s *timing) orders(stages []stage) [][]action {
	held := make([][]int, len(s.topo.Devices)) // stages of a device
	var ranks []int                            // devices in the order of their first stage
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
	return over(bytes, s.topo.Devices[d].BytesPerSecond)
}

// action is one forward or backward of a micro-batch on a stage.
type action struct {
	stage, batch int
	backward     bool
}

// play runs every device's actions in order and is when each device ends.
func (s *timing) play(stages []stage, orders [][]action) []float64 {
	done := map[action]float64{}
	end := make([]float64, len(orders))
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
				length := stages[a.stage].forward
				if a.backward {
					length = stages[a.stage].backward
				}
				end[d] = max(end[d], ready) + length
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
