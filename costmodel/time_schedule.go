package costmodel

// orders are the actions of each device in the order of the schedule
// (torch/distributed/pipelining/schedules.py: ScheduleGPipe, Schedule1F1B,
// ScheduleInterleaved1F1B). Devices without a stage have none.
func (s *timing) orders(stages []stage, m int, train bool) [][]action {
	held := make([][]int, len(s.topo.Devices)) // stages of a device
	var ranks []int                            // devices in the order of their first stage
	for i := range stages {
		d := stages[i].device
		if len(held[d]) == 0 {
			ranks = append(ranks, d)
		}
		held[d] = append(held[d], i)
	}
	out := make([][]action, len(held))
	for rank, d := range ranks {
		o := order{stages: held[d], m: m}
		switch kind := s.t.Workload.Schedule; {
		case !train:
			o.forwards(m * len(o.stages))
		case kind == GPipe:
			o.run(m * len(o.stages))
		case len(o.stages) > 1:
			o.round = m / max(1, m/len(ranks))
			o.run((len(o.stages)-1)*o.round + 2*(len(ranks)-1-rank))
		default:
			o.run(len(stages) - held[d][0])
		}
		out[d] = o.list
	}
	return out
}

// order builds one device's list: forwards and backwards go round its stages,
// round micro-batches each time.
type order struct {
	stages   []int
	m, round int
	f, b     int // forwards and backwards so far
	list     []action
}

// run is warm-up forwards, then a backward for each forward, then the rest.
func (o *order) run(warmUp int) {
	total := o.m * len(o.stages)
	o.forwards(min(warmUp, total))
	for o.f < total {
		if len(o.stages) > 1 { // interleaved: forward first
			o.forwards(1)
			o.backward()
			continue
		}
		o.backward()
		o.forwards(1)
	}
	for o.b < total {
		o.backward()
	}
}

func (o *order) forwards(n int) {
	for range n {
		stage, batch := o.place(o.f)
		o.list = append(o.list, action{o.stages[stage], batch, false})
		o.f++
	}
}

func (o *order) backward() {
	stage, batch := o.place(o.b)
	o.list = append(o.list, action{o.stages[len(o.stages)-1-stage], batch, true})
	o.b++
}

// place is the stage and micro-batch of the i-th action.
func (o *order) place(i int) (stage, batch int) {
	n, round := len(o.stages), o.round
	if round == 0 {
		round = o.m
	}
	return i / round % n, i/(round*n)*round + i%round
}
