package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

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
	end := make([]float64, len(held))
	if schedule.Kind == costmodel.Interleaved {
		end = s.lockStep(stages, schedule, held, ranks)
	} else {
		for rank, t := range s.stageSeconds(stages).Ends(schedule.Kind, s.t.Workload.Mode == costmodel.Train, schedule.MicroBatches) {
			end[ranks[rank]] = t
		}
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
func (s *timing) schedule(stages []stage) (_ costmodel.Schedule, held [][]int, ranks []int) {
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
	schedule := costmodel.Schedule{Kind: cmp.Or(w.Schedule, costmodel.OneFOneB), Stages: int64(len(ranks)), Chunks: int64(chunks), MicroBatches: max(1, w.MicroBatches)}
	if chunks > 1 {
		schedule.Kind = costmodel.Interleaved
	}
	return schedule, held, ranks
}

// stageSeconds are the times of stages that are on a device each.
func (s *timing) stageSeconds(stages []stage) *StageSeconds {
	out := &StageSeconds{}
	for i := range stages {
		g := &stages[i]
		out.Forward, out.Backward = append(out.Forward, g.forward), append(out.Backward, g.backward)
		out.Issue, out.IssueBack = append(out.Issue, g.issue), append(out.IssueBack, g.issueBack)
		if i+1 < len(stages) {
			out.To = append(out.To, s.topo.SendSeconds(g.device, stages[i+1].device, g.output))
			out.From = append(out.From, s.topo.SendSeconds(stages[i+1].device, g.device, g.output))
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
