package steptime

import "github.com/devmap-dev/devmap/costmodel"

// Spans returns what every device does in a [Step], by the same rules. GPUs of one stage, and equal
// replicas, have the spans of their first. devmap's own engine has a program instead. Pipelines of too
// many passes are an error: each pass is a span.
func Spans(table *costmodel.Table, topo *costmodel.Topology, place []int) ([]Span, error) {
	step, err := newTiming(table, topo, place)
	if err != nil {
		return nil, err
	}
	step.record = &recorder{}
	switch runs := table.Workload.Strategy.Traits(); {
	case runs.Replicated == (place != nil):
		return nil, errorf("a map of units under %s", table.Workload.Strategy)
	case runs.Sharded && runs.Replicated:
		step.sharded(0)
	case runs.Replicated:
		step.dataParallel(0)
	case runs.Staged:
		const most = 1 << 20 // [repeat] then runs each
		stages, _, _ := step.stages()
		passes := step.microBatches() * float64(len(stages))
		if step.trains() {
			passes *= 2
		}
		if passes > most {
			return nil, errorf("it has %.0f passes of micro-batches, and at most %d are listed", passes, most)
		}
		step.pipeline()
	default:
		step.recordSequence()
	}
	if starts := step.topo.Starts; starts != nil {
		for i := range step.record.spans {
			span := &step.record.spans[i]
			span.Device = starts[span.Device]
		}
	}
	return step.record.spans, nil
}

// recordSequence records a device map's step. It repeats [Sequential], which a search calls millions
// of times: that one records nothing.
func (step *timing) recordSequence() {
	workload, record := &step.table.Workload, step.record
	var clock round
	run := func(unit int, what string, issue, length, in float64, from int) {
		device, start := step.place[unit], clock.Device
		clock.pass(issue, length+in)
		record.add(Span{from, streamSend, doesTransfer, unit, unit + 1, 0, start, start + in})
		record.add(Span{device, streamCompute, what, unit, unit + 1, 0, start + in, clock.Device})
	}
	pass := func(token bool) {
		for unit, device := range step.place {
			took, in, from := step.unit(unit, device), 0., device
			if unit > 0 {
				from = step.place[unit-1]
				in = step.send(unit-1, from, device)
			}
			if token {
				run(unit, doesDecode, took.IssueToken+took.Copied, took.Token+took.Copied, in/tokensOf(workload), from)
			} else {
				run(unit, doesForward, took.Issue+took.Copied, took.Forward+took.Copied, in, from)
			}
		}
	}
	pass(false)
	for unit := len(step.place) - 1; unit >= 0 && step.trains(); unit-- {
		took, in, from := step.unit(unit, step.place[unit]), 0., step.place[unit]
		if unit+1 < len(step.place) {
			from = step.place[unit+1]
			in = step.send(unit, from, step.place[unit])
		}
		run(unit, doesBackward, took.IssueBack, took.Backward, in, from)
	}
	end := step.rounds(&clock)
	if passes := TokenPasses(workload); passes > 0 {
		from := len(record.spans)
		clock = round{}
		pass(true)
		for i := from; i < len(record.spans); i++ {
			record.spans[i].Start += end
			record.spans[i].End += end
		}
		record.repeat(from, clock.Device, int64(passes)-1)
		end += passes * clock.Device
	}
	update := make([]float64, len(step.topo.Devices))
	for unit, device := range step.place {
		took := step.unit(unit, device)
		update[device] += took.Update
	}
	for device, seconds := range update {
		record.add(Span{device, streamCompute, doesUpdate, 0, 0, -1, end, end + seconds})
	}
}
