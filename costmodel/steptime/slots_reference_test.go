package steptime

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// The direct form: every instruction of every device with all its dependencies, each begun once
// these are over, in any order. It has micro-batches and sequences, and no rows.

type reference struct {
	ticks    *Ticks
	place    []int
	devices  []int
	streams  map[string][]string // instructions in order
	waits    map[string][]string
	latency  map[[2]string]int64
	takes    map[string]int64
	lastSend map[string]string // by buffer
	sent     map[string][]string
}

func (ref *reference) put(stream, name string, takes int64, waits ...string) {
	ref.streams[stream] = append(ref.streams[stream], name)
	ref.takes[name] = takes
	for _, wait := range waits {
		if wait != "" {
			ref.waits[name] = append(ref.waits[name], wait)
		}
	}
}

// send puts a message on its stream. It waits for the slot that the message slots before it had.
func (ref *reference) send(from, to int, channel string, busy, latency int64, limit int, ready, buffer string) {
	number := len(ref.sent[channel])
	name := fmt.Sprintf("send %s %d", channel, number)
	ref.sent[channel] = append(ref.sent[channel], name)
	waits := []string{ready}
	if number >= limit {
		waits = append(waits, fmt.Sprintf("free %s %d", channel, number-limit))
	}
	ref.put(fmt.Sprintf("%d to %d", from, to), name, busy, waits...)
	ref.latency[[2]string{name, fmt.Sprintf("recv %s %d", channel, number)}] = latency
	ref.lastSend[buffer] = name
}

func (ref *reference) recv(device int, channel string, number int64) {
	name := fmt.Sprintf("recv %s %d", channel, number)
	ref.put(fmt.Sprint(device), name, 0, fmt.Sprintf("send %s %d", channel, number))
}

func (ref *reference) free(device int, channel string, number int64) {
	ref.put(fmt.Sprint(device), fmt.Sprintf("free %s %d", channel, number), 0)
}

// end is the time when all is over, -1 if something never begins.
func (ref *reference) end() (all map[string]int64, last int64) {
	all = make(map[string]int64)
	next := make(map[string]int)
	clock := make(map[string]int64)
	for ran := true; ran; {
		ran = false
		for stream, names := range ref.streams {
			for next[stream] < len(names) {
				name, start, ready := names[next[stream]], clock[stream], true
				for _, wait := range ref.waits[name] {
					over, ok := all[wait]
					ready = ready && ok
					start = max(start, over+ref.latency[[2]string{wait, name}])
				}
				if !ready {
					break
				}
				clock[stream] = start + ref.takes[name]
				all[name] = clock[stream]
				last = max(last, clock[stream])
				next[stream]++
				ran = true
			}
		}
	}
	for stream, names := range ref.streams {
		if next[stream] < len(names) {
			return all, -1
		}
	}
	return all, last
}

type referenceStage struct {
	first, end, device int
	units              []int // that do not pass; all if none is
}

func (ref *reference) stages() (out []referenceStage) {
	for unit, device := range ref.place {
		if unit == 0 || ref.place[unit-1] != device {
			out = append(out, referenceStage{first: unit, device: device})
			if !slices.Contains(ref.devices, device) {
				ref.devices = append(ref.devices, device)
			}
		}
		stage := &out[len(out)-1]
		stage.end = unit + 1
		if !ref.ticks.table.Units[unit].Regions.Passes {
			stage.units = append(stage.units, unit)
		}
	}
	for i := range out {
		if len(out[i].units) == 0 {
			out[i].units = []int{out[i].first}
		}
	}
	return out
}

// pass is one pass of a micro-batch through a stage.
func (ref *reference) pass(stage *referenceStage, units []int, label, in string, number int64, parts func(unit int) []int64, out func(ready, buffer string), buffer string, writer int) {
	compute := fmt.Sprint(stage.device)
	if in != "" {
		ref.recv(stage.device, in, number)
	}
	name := ""
	for i, unit := range units {
		all := parts(unit)
		for j, takes := range all {
			name = fmt.Sprintf("%s %d.%d", label, unit, j)
			wait := ""
			if i == writer && j == len(all)-1 && out != nil {
				wait = ref.lastSend[buffer]
			}
			ref.put(compute, name, takes, wait)
		}
		if i == 0 && in != "" {
			ref.free(stage.device, in, number)
		}
	}
	if out != nil {
		out(name, buffer)
	}
}

func referenceStep(ticks *Ticks, place []int) int64 {
	ref := &reference{ticks: ticks, place: place, streams: map[string][]string{}, waits: map[string][]string{}, latency: map[[2]string]int64{}, takes: map[string]int64{}, lastSend: map[string]string{}, sent: map[string][]string{}}
	workload := &ticks.table.Workload
	stages := ref.stages()
	ranks := make([]int, len(stages))
	owned := make([][]int, len(ref.devices))
	chunks := 1
	for i := range stages {
		ranks[i] = slices.Index(ref.devices, stages[i].device)
		owned[ranks[i]] = append(owned[ranks[i]], i)
		chunks = max(chunks, len(owned[ranks[i]]))
	}
	train := workload.Mode == costmodel.Train
	schedule := costmodel.NewSchedule(workload, int64(len(ref.devices)), int64(chunks))
	if chunks > 1 && schedule.Kind != "" {
		schedule.Kind = costmodel.Interleaved
	}
	slots, last := int(min(2, workload.MicroBatches)), len(stages)-1
	act := func(s int) string { return fmt.Sprintf("act%d", s) }
	// A device map's passes follow each other, across devices too.
	before := ""
	chain := func(device int, run func()) {
		key := fmt.Sprint(device)
		at := len(ref.streams[key])
		run()
		first := ref.streams[key][at]
		if schedule.Kind == "" && before != "" {
			ref.waits[first] = append(ref.waits[first], before)
		}
		before = ref.streams[key][len(ref.streams[key])-1]
	}
	forward := func(s int, k, token int64) {
		stage := &stages[s]
		in, prefix := act(s), "forward"
		if token > 0 {
			in, prefix = fmt.Sprintf("tok%d", s), fmt.Sprintf("decode%d", token)
		}
		number := k
		if token > 0 {
			number = (token-1)*workload.MicroBatches + k
		}
		if s == 0 {
			in = ""
			if token > 0 && stages[last].device != stage.device {
				in = "ids"
			}
		}
		var out func(ready, buffer string)
		buffer := fmt.Sprintf("out%d", s)
		if s < last {
			to := stages[s+1].device
			unit := stage.end - 1
			out = func(ready, buffer string) {
				busy, latency := ticks.Message(stage.device, to, ticks.table.Units[unit].Work.Output)
				channel := act(s + 1)
				if token > 0 {
					busy, latency, channel = ticks.Token(stage.device, to, unit), 0, fmt.Sprintf("tok%d", s+1)
				}
				ref.send(stage.device, to, channel, busy, latency, slots, ready, buffer)
			}
		} else if workload.NewTokens > token && stages[0].device != stage.device {
			out = func(ready, buffer string) {
				ref.send(stage.device, stages[0].device, "ids", 0, 0, 1<<30, ready, buffer)
			}
		}
		// In training a unit that keeps no input adds to the output of the unit before it, at the
		// stage's end the message itself.
		writer := len(stage.units) - 1
		for train && writer > 0 && ticks.table.Units[stage.units[writer]].Regions.Input == 0 {
			writer--
		}
		ref.pass(stage, stage.units, fmt.Sprintf("%s %d", prefix, k), in, number, func(unit int) []int64 {
			took := ticks.Unit(unit, stage.device)
			if token > 0 {
				return []int64{took.Token}
			}
			return []int64{took.Forward}
		}, out, buffer, writer)
	}
	backward := func(s int, k int64) {
		stage := &stages[s]
		in := ""
		if s < last {
			in = fmt.Sprintf("grad%d", s)
		}
		var out func(ready, buffer string)
		if s > 0 {
			to := stages[s-1].device
			out = func(ready, buffer string) {
				busy, latency := ticks.Message(stage.device, to, ticks.table.Units[stage.first-1].Work.Output)
				ref.send(stage.device, to, fmt.Sprintf("grad%d", s-1), busy, latency, slots, ready, buffer)
			}
		}
		back := slices.Clone(stage.units)
		slices.Reverse(back)
		ref.pass(stage, back, fmt.Sprintf("backward %d", k), in, k, func(unit int) []int64 {
			took := ticks.Unit(unit, stage.device)
			return []int64{took.Recompute, took.Backward}
		}, out, fmt.Sprintf("dout%d", s), len(back)-1)
	}
	if schedule.Kind == "" {
		for k := range workload.MicroBatches {
			for s := range stages {
				chain(stages[s].device, func() { forward(s, k, 0) })
			}
			for s := last; s >= 0 && train; s-- {
				chain(stages[s].device, func() { backward(s, k) })
			}
		}
		for token := int64(1); token <= workload.NewTokens; token++ {
			for k := range workload.MicroBatches {
				for s := range stages {
					chain(stages[s].device, func() { forward(s, k, token) })
				}
			}
		}
	} else {
		for rank, actions := range order.Engine(schedule, ranks, train) {
			for token := int64(0); token <= workload.NewTokens; token++ {
				for _, action := range actions {
					if action.Kind == order.Backward {
						backward(owned[rank][action.Chunk], action.MicroBatch)
					} else {
						forward(owned[rank][action.Chunk], action.MicroBatch, token)
					}
				}
			}
		}
	}
	if !train {
		_, end := ref.end()
		return end
	}
	// Tied gradients, from each use to each other device.
	arrivals := map[string]int64{}
	for number, uses := range tiedUses(ticks.table.Units) {
		for _, use := range uses {
			var sent []int
			for _, to := range uses {
				from, device := place[use.unit], place[to.unit]
				if from == device || use.grads == 0 || slices.Contains(sent, device) {
					continue
				}
				sent = append(sent, device)
				busy, latency := ticks.Message(from, device, use.grads)
				name := fmt.Sprintf("tied %d %d %d", number, use.unit, device)
				ref.put(fmt.Sprintf("%d to %d", from, device), name, busy, fmt.Sprintf("backward %d %d.1", workload.MicroBatches-1, use.unit))
				arrivals[name] = latency
			}
		}
	}
	all, end := ref.end()
	if end < 0 {
		return end
	}
	for name, latency := range arrivals {
		end = max(end, all[name]+latency)
	}
	slowest := int64(0)
	for _, device := range ref.devices {
		update := int64(0)
		for unit := range place {
			if place[unit] == device {
				update += ticks.Update(place, unit)
			}
		}
		slowest = max(slowest, update)
	}
	return end + slowest
}
