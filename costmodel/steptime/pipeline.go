package steptime

import "github.com/devmap-dev/devmap/costmodel"

// pipeline simulates the schedule on the runs of the placement, in the order of
// the units. The step ends when the last device has updated its weights.
func (step *timing) pipeline() float64 {
	stages, devices, token := step.stages()
	end := make([]float64, len(step.topo.Devices))
	for rank, seconds := range simulateStages(step.schedule(stages, devices), step.trains(), stages, step.record) {
		end[devices[rank]] = seconds
	}
	step.record.ofStages(step.place, devices)
	slowest := 0.
	for device := range end {
		update := step.updateOn(device)
		slowest = max(slowest, end[device]+update)
		step.record.add(Span{device, streamCompute, doesUpdate, 0, 0, -1, end[device], end[device] + update})
	}
	for _, device := range devices {
		step.record.add(Span{device, streamCompute, doesDecode, 0, 0, -1, slowest, slowest + float64(step.table.Workload.NewTokens)*token})
	}
	return slowest + float64(step.table.Workload.NewTokens)*token
}

// stages are the placement's runs, the devices by rank in the order of their first stage, and a
// token's time through all of them.
func (step *timing) stages() (stages []Stage, devices []int, token float64) {
	rankOf := make(map[int]int)
	var tokens round
	for unit, device := range step.place {
		if unit == 0 || step.place[unit-1] != device {
			if _, ok := rankOf[device]; !ok {
				rankOf[device] = len(devices)
				devices = append(devices, device)
			}
			if unit > 0 {
				before := step.place[unit-1]
				last := &stages[len(stages)-1]
				last.To, last.From = step.send(unit-1, before, device), step.send(unit-1, device, before)
			}
			stages = append(stages, Stage{Rank: rankOf[device]})
			token += tokens.Device
			tokens = round{}
		}
		seconds, last := Unit(step.of(device), step.topo, device, unit), &stages[len(stages)-1]
		last.Forward += seconds.Forward
		last.Backward += seconds.Backward
		last.Issue += seconds.Issue
		last.IssueBack += seconds.IssueBack
		tokens.pass(seconds.IssueToken, seconds.Token)
	}
	return stages, devices, token + tokens.Device
}

// schedule is the order of the stages: interleaved if a device holds several.
func (step *timing) schedule(stages []Stage, devices []int) costmodel.Schedule {
	owned, chunks := make([]int64, len(devices)), int64(1)
	for i := range stages {
		owned[stages[i].Rank]++
		chunks = max(chunks, owned[stages[i].Rank])
	}
	out := costmodel.NewSchedule(&step.table.Workload, int64(len(devices)), chunks)
	if chunks > 1 && !out.Kind.Chunked() {
		out.Kind = costmodel.Interleaved
	}
	return out
}

func (step *timing) updateOn(device int) float64 {
	var bytes float64
	var exchanged UnitSeconds
	table, dev := step.of(device), &step.topo.Devices[device]
	for unit, on := range step.place {
		if on == device {
			bytes += table.Units[unit].Work.Update
			exchanged.exchange(table, dev, &table.Units[unit].Work)
		}
	}
	return updateSeconds(dev, bytes/float64(shards(table)), table.Workload.Precision) + exchanged.Update
}
