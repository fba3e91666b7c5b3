package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

// pipeline plays the schedule on the runs of the placement, in the order of
// the units. The step ends when the last device has updated its weights.
func (s *timing) pipeline() float64 {
	stages, devices, token := s.stages()
	end := make([]float64, len(s.topo.Devices))
	for rank, clock := range Play(s.schedule(stages, devices), s.trains(), stages) {
		end[devices[rank]] = clock.Device
	}
	slowest := 0.
	for d := range end {
		slowest = max(slowest, end[d]+s.updateOn(d))
	}
	return slowest + float64(s.table.Workload.NewTokens)*token
}

// stages are the runs of the placement, the devices by rank, which is in the
// order of their first stage, and the time of a token through all of them.
func (s *timing) stages() (stages []Stage, devices []int, token float64) {
	rankOf := make(map[int]int)
	var tokens round
	for u, d := range s.place {
		if u == 0 || s.place[u-1] != d {
			if _, ok := rankOf[d]; !ok {
				rankOf[d] = len(devices)
				devices = append(devices, d)
			}
			if u > 0 {
				before := s.place[u-1]
				last := &stages[len(stages)-1]
				last.To, last.From = s.send(u-1, before, d), s.send(u-1, d, before)
			}
			stages = append(stages, Stage{Rank: rankOf[d]})
			token += tokens.Device
			tokens = round{}
		}
		t, last := Unit(s.table, s.topo, d, u), &stages[len(stages)-1]
		last.Forward += t.Forward
		last.Backward += t.Backward
		last.Issue += t.Issue
		last.IssueBack += t.IssueBack
		tokens.run(t.IssueToken, t.Token)
	}
	return stages, devices, token + tokens.Device
}

// schedule is the order in which the stages run: where a device holds several,
// interleaved, whatever was asked for.
func (s *timing) schedule(stages []Stage, devices []int) costmodel.Schedule {
	w, held, chunks := &s.table.Workload, make([]int64, len(devices)), int64(1)
	for i := range stages {
		held[stages[i].Rank]++
		chunks = max(chunks, held[stages[i].Rank])
	}
	out := costmodel.Schedule{Kind: cmp.Or(w.Schedule, costmodel.OneFOneB), Stages: int64(len(devices)), Chunks: chunks, MicroBatches: max(1, w.MicroBatches)}
	if chunks > 1 {
		out.Kind = costmodel.Interleaved
	}
	return out
}

func (s *timing) updateOn(d int) float64 {
	var bytes float64
	for u, on := range s.place {
		if on == d {
			bytes += s.table.Units[u].Work.Update
		}
	}
	return updateSeconds(&s.topo.Devices[d], bytes, s.table.Workload.Precision)
}
