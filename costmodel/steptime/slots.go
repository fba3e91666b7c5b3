package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// line is a pipeline that is simulated: stages on ranks, with channels between them.
type line struct {
	*Ticks
	train   bool
	devices []int // of each rank
	ranks   []simulatedRank
	stages  []lineStage
	streams []*stream
	all     []channel
	times   []int64 // channels have a few each
	passed  int     // how often rows were passed over
}

// lineStage is a run of units on one device.
type lineStage struct {
	first, end, rank          int
	forward, backward, decode job
	learn, whole              job    // the second half of backward, and both halves at once
	final                     job    // the last decode: no token follows it
	out, dout                 buffer // of the message on, and of the gradient back
	units                     []movedUnit
}

// line is the pipeline of a placement.
func (ticks *Ticks) line(place []int) *line {
	line := &line{Ticks: ticks, train: ticks.table.Workload.Mode == costmodel.Train}
	count, middle := 2, costmodel.Middle(ticks.table.Workload.Schedule, place)
	for unit := range place {
		if unit > 0 && place[unit-1] != place[unit] {
			count++
		}
	}
	line.stages = make([]lineStage, 0, count)
	line.devices = make([]int, 0, min(count, len(ticks.topo.Devices)))
	for unit, device := range place {
		if unit > 0 && place[unit-1] == device && unit != middle {
			line.stages[len(line.stages)-1].end = unit + 1
			continue
		}
		rank := slices.Index(line.devices, device)
		if rank < 0 {
			rank = len(line.devices)
			line.devices = append(line.devices, device)
		}
		line.stages = append(line.stages, lineStage{first: unit, end: unit + 1, rank: rank})
	}
	line.ranks = make([]simulatedRank, len(line.devices))
	most := 2*count + 1 // messages there and back, and the tokens'
	line.all, line.streams = make([]channel, 0, most), make([]*stream, 0, most)
	line.times = make([]int64, 2*slots*most)
	for i := range line.stages {
		line.took(&line.stages[i])
	}
	// Before the first unit that runs kernels, and after the last, nothing is sent.
	first, last := line.ends()
	for i := first + 1; i <= last; i++ {
		line.join(&line.stages[i-1], &line.stages[i])
	}
	line.joinTokens()
	for i := range line.stages {
		stage := &line.stages[i]
		stage.whole = stage.backward
		stage.whole.total += stage.learn.total
		line.moves(stage)
	}
	line.rows()
	return line
}

// took are the times of a stage's passes. Units that pass take none and go with their neighbours.
func (line *line) took(stage *lineStage) {
	first, last := UnitTicks{}, UnitTicks{}
	run, written, writer := 0, int64(0), 0 // who writes what is sent forward, and how long after that the stage ends
	device := line.devices[stage.rank]
	for unit := stage.first; unit < stage.end; unit++ {
		took := line.Unit(unit, device)
		stage.forward.total += took.Forward
		stage.backward.total += took.Recompute + took.Backward
		stage.learn.total += took.Learn
		stage.decode.total += took.Token
		if !line.table.Units[unit].Regions.Passes {
			if run == 0 {
				first = took
			}
			if !line.train || line.table.Units[unit].Regions.Input > 0 {
				written, writer = 0, run // earlier units write its kept input
			}
			run, last, written = run+1, took, written+took.Forward
		}
	}
	stage.forward.frees, stage.forward.last = first.Forward, written
	stage.decode.frees, stage.decode.last = first.Token, last.Token
	stage.backward.frees, stage.backward.last = last.Recompute+last.Backward, first.Backward
	for _, now := range []*job{&stage.forward, &stage.backward, &stage.decode} {
		now.alone = run <= 1
	}
	stage.forward.alone = writer == 0
	stage.out.owner, stage.dout.owner = &line.ranks[stage.rank], &line.ranks[stage.rank]
}

// join makes the channels between two stages.
func (line *line) join(from, to *lineStage) {
	there, back := line.devices[from.rank], line.devices[to.rank]
	output := line.table.Units[from.end-1].Work.Output
	act := line.channel(from.rank, to.rank)
	act.busy, act.latency = line.Message(there, back, output)
	from.forward.out, from.forward.buffer, to.forward.in = act, &from.out, act
	if line.train {
		grad := line.channel(to.rank, from.rank)
		grad.busy, grad.latency = line.Message(back, there, output)
		to.backward.out, to.backward.buffer, from.backward.in = grad, &to.dout, grad
	}
	if line.table.Workload.NewTokens > 0 {
		tok := line.channel(from.rank, to.rank)
		tok.busy = line.Token(there, back, from.end-1)
		from.decode.out, from.decode.buffer, to.decode.in = tok, &from.out, tok
	}
}

// joinTokens makes the channel for generated ids from the head to the embedding; none if both are
// on one device.
func (line *line) joinTokens() {
	one, other := line.ends()
	first, last := &line.stages[one], &line.stages[other]
	if line.table.Workload.NewTokens > 0 && first.rank != last.rank {
		ids := line.channel(last.rank, first.rank)
		ids.endless = true
		last.forward.out, last.forward.buffer, first.decode.in = ids, &last.out, ids
		last.decode.out, last.decode.buffer = ids, &last.out
	}
	for i := range line.stages {
		line.stages[i].final = line.stages[i].decode
	}
	last.final.out = nil
}

// ends are the stages with the first and last unit that run kernels, else the line's ends.
func (line *line) ends() (first, last int) {
	first, last = len(line.stages)-1, 0
	one, other := costmodel.Running(line.table.Units)
	for i := range line.stages {
		stage := &line.stages[i]
		if stage.first <= one && one < stage.end {
			first = i
		}
		if stage.first <= other && other < stage.end {
			last = i
		}
	}
	return first, last
}

// channel is a new channel between two ranks, on the stream that they have. As
// many messages are on their way as it has slots.
func (line *line) channel(from, to int) *channel {
	count := int(min(slots, line.microBatches()))
	own := line.times[:2*slots]
	line.times = line.times[2*slots:]
	line.all = append(line.all, channel{number: len(line.all), stream: line.stream(from, to), to: &line.ranks[to], free: own[:count:slots], arrived: own[slots:slots]})
	return &line.all[len(line.all)-1]
}

// stream is the stream from one rank to another.
func (line *line) stream(from, to int) *stream {
	rank := &line.ranks[from]
	for _, i := range rank.streams {
		if line.streams[i].to == to {
			return line.streams[i]
		}
	}
	if rank.streams == nil {
		rank.streams = rank.few[:0]
	}
	rank.streams = append(rank.streams, len(line.streams))
	next := &stream{from: rank, to: to}
	next.waiting = next.few[:0]
	line.streams = append(line.streams, next)
	return next
}

func (line *line) microBatches() int64 { return max(1, line.table.Workload.MicroBatches) }

// step simulates the line. After all gradients, and a pass of their norm through all ranks, every
// rank updates its weights.
func (line *line) step(place []int) int64 {
	line.repeats()
	var end, slowest int64
	for rank := range line.ranks {
		if line.ranks[rank].row < len(line.ranks[rank].rows) {
			return endless
		}
		end = max(end, line.ranks[rank].clock)
	}
	if !line.train {
		return end
	}
	end = max(end, line.ties(place))
	update := make([]int64, len(line.topo.Devices))
	for unit, device := range place {
		update[device] += line.Update(place, unit)
		slowest = max(slowest, update[device])
	}
	return end + slowest
}

// simulate runs all ranks to their ends, or until each waits for another.
func (line *line) simulate() {
	for ran := true; ran; {
		ran = false
		for rank := range line.ranks {
			ran = line.ranks[rank].advance() || ran
		}
		for rank := len(line.ranks) - 1; rank >= 0; rank-- {
			ran = line.ranks[rank].advance() || ran
		}
	}
}
