package steptime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Step is the time of a step of devmap's own engine in ticks, where unit u is on
// device place[u]; negative where it has no end, as ranks wait for each other in a
// ring.
func (ticks *Ticks) Step(place []int) int64 {
	if ticks.table.Workload.Strategy.Traits().Sequential {
		return ticks.sequential(place)
	}
	if workload := &ticks.table.Workload; workload.NewTokens > 0 && workload.MicroBatches > manyGenerate {
		return ticks.near(place)
	}
	return ticks.line(place).step(place)
}

// manyGenerate is up to how many micro-batches generation is played with, as
// all of them have tokens on their way at once.
const manyGenerate = 1 << 12

// near is the step of more micro-batches than generation is played with: every
// further one is taken for as long as those of the second half of these.
func (ticks *Ticks) near(place []int) int64 {
	step := func(count int64) int64 {
		fewer, table := *ticks, *ticks.table
		fewer.table = &table
		table.Workload.MicroBatches = count
		return fewer.line(place).step(place)
	}
	half, all := step(manyGenerate/2), step(manyGenerate)
	if half < 0 || all < 0 {
		return endless
	}
	more := float64(ticks.table.Workload.MicroBatches-manyGenerate) / (manyGenerate / 2)
	return all + int64(math.Round(more*float64(all-half)))
}

// Seconds is [Ticks.Step] in seconds. A step that may take longer than ticks count
// is counted in longer ones.
func (ticks *Ticks) Seconds(place []int) (float64, error) {
	longest := ticks.longest(place)
	if math.IsNaN(longest) || math.IsInf(longest, 0) {
		return math.Inf(1), nil
	}
	if longest > mostTicks {
		longer := *ticks
		longer.units, longer.scale = make(map[int][]UnitTicks), ticks.scale+math.Ilogb(longest/mostTicks)+1
		ticks = &longer
	}
	step := ticks.Step(place)
	if step < 0 {
		return 0, errorf("the stages wait for each other in a ring")
	}
	return ticks.seconds(step), nil
}

// mostTicks is the longest step that is counted in picoseconds.
const mostTicks = 1 << 61

// longest is more than any step of a placement takes, in ticks: everything, one
// after the other.
func (ticks *Ticks) longest(place []int) float64 {
	workload := &ticks.table.Workload
	batches, tokens := float64(max(1, workload.MicroBatches)), float64(workload.NewTokens)
	var total float64
	for unit, device := range place {
		took := Unit(ticks.table, ticks.topo, device, unit)
		seconds := batches*(took.Forward+took.Backward+tokens*took.Token) + took.Update
		if unit > 0 && place[unit-1] != device {
			output := ticks.table.Units[unit-1].Work.Output
			seconds += batches * (1 + tokens) * (ticks.topo.SendSeconds(place[unit-1], device, output) + ticks.topo.SendSeconds(device, place[unit-1], output))
		}
		for _, tie := range ticks.table.Units[unit].Regions.Tied {
			seconds += updateSeconds(&ticks.topo.Devices[device], copyBytes(&tie), workload.Precision)
			if from := place[tie.Owner]; from != device {
				seconds += ticks.topo.SendSeconds(from, device, tie.Grads) + ticks.topo.SendSeconds(device, from, tie.Grads)
			}
		}
		total += seconds
	}
	return math.Ldexp(total*perSecond, -ticks.scale)
}

// endless is the step that has no end.
const endless = -1

// line is a pipeline that is played: stages on ranks, with channels between
// them.
type line struct {
	*Ticks
	train   bool
	devices []int // of each rank
	ranks   []playRank
	stages  []lineStage
	streams []*stream
	all     []channel
	times   []int64 // of which channels have a few each
	passed  int     // how often rows were passed over
}

// lineStage is a run of units on one device.
type lineStage struct {
	first, end, rank          int
	forward, backward, decode job
	final                     job    // the last decode: no token follows it
	out, dout                 buffer // of the message on, and of the gradient back
}

// line is the pipeline of a placement.
func (ticks *Ticks) line(place []int) *line {
	line := &line{Ticks: ticks, train: ticks.table.Workload.Mode == costmodel.Train}
	count := 1
	for unit := range place {
		if unit > 0 && place[unit-1] != place[unit] {
			count++
		}
	}
	line.stages = make([]lineStage, 0, count)
	line.devices = make([]int, 0, min(count, len(ticks.topo.Devices)))
	for unit, device := range place {
		if unit > 0 && place[unit-1] == device {
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
	line.ranks = make([]playRank, len(line.devices))
	most := 2*count + 1 // messages there and back, and the tokens'
	line.all, line.streams = make([]channel, 0, most), make([]*stream, 0, most)
	line.times = make([]int64, 2*slots*most)
	for i := range line.stages {
		line.took(&line.stages[i])
	}
	// Before the first unit that runs kernels, and behind the last, nothing is sent.
	first, last := line.ends()
	for i := first + 1; i <= last; i++ {
		line.join(&line.stages[i-1], &line.stages[i])
	}
	line.joinTokens()
	line.rows()
	return line
}

// took are the times of a stage's passes. Units that pass take none and go with
// their neighbours.
func (line *line) took(stage *lineStage) {
	first, last := UnitTicks{}, UnitTicks{}
	run, written, writer := 0, int64(0), 0 // who writes what is sent forward, and how long after that the stage ends
	device := line.devices[stage.rank]
	for unit := stage.first; unit < stage.end; unit++ {
		took := line.Unit(unit, device)
		stage.forward.total += took.Forward
		stage.backward.total += took.Recompute + took.Backward
		stage.decode.total += took.Token
		if !line.table.Units[unit].Regions.Passes {
			if run == 0 {
				first = took
			}
			if !line.train || line.table.Units[unit].Regions.Input > 0 {
				written, writer = 0, run // those before it write what it keeps
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

// joinTokens makes the channel by which the head tells the embedding what it
// generated; none where both are on one device.
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

// ends are the stages with the first and the last unit that run kernels, or the
// ends of the line where none does.
func (line *line) ends() (first, last int) {
	first, last = len(line.stages)-1, 0
	for i := range line.stages {
		stage := &line.stages[i]
		for unit := stage.first; unit < stage.end; unit++ {
			if !line.table.Units[unit].Regions.Passes {
				first, last = min(first, i), i
				break
			}
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

// stream is that of one rank to another.
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

// rows gives every rank its rows of jobs.
func (line *line) rows() {
	held := make([][]*lineStage, len(line.ranks))
	chunks := 1
	for i := range line.stages {
		stage := &line.stages[i]
		held[stage.rank] = append(held[stage.rank], stage)
		chunks = max(chunks, len(held[stage.rank]))
	}
	schedule := costmodel.NewSchedule(&line.table.Workload, int64(len(line.ranks)), int64(chunks))
	if chunks > 1 {
		schedule.Kind = costmodel.Interleaved
	}
	for rank := range line.ranks {
		phases := line.phases(schedule, rank)
		of := func(forward func(*lineStage) *job, back bool) []row {
			return rowsOf(phases, func(action order.Action) *job {
				switch {
				case action.Chunk >= int64(len(held[rank])) || action.Backward && !back:
					return nil
				case action.Backward:
					return &held[rank][action.Chunk].backward
				}
				return forward(held[rank][action.Chunk])
			})
		}
		rows := of(func(stage *lineStage) *job { return &stage.forward }, line.train)
		if tokens := line.table.Workload.NewTokens; tokens > 0 {
			decodes := of(func(stage *lineStage) *job { return &stage.decode }, false)
			rows = append(rows, repeated(decodes, tokens-1)...)
			rows = append(rows, of(func(stage *lineStage) *job { return &stage.final }, false)...)
		}
		line.ranks[rank].rows = rows
		line.ranks[rank].untilRow = math.MaxInt64
	}
}

// repeated are rows that a rank runs so many times one after the other, as one.
func repeated(rows []row, times int64) []row {
	if times == 0 {
		return nil
	}
	out := row{times: times}
	for _, row := range rows {
		for range row.times {
			out.jobs = append(out.jobs, row.jobs...)
		}
	}
	return []row{out}
}

// step plays the line. When all gradients are there, and their norm went round
// all ranks, every rank updates its weights.
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

// play runs all ranks to their ends, or until each waits for another.
func (line *line) play() {
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

// sequential is the step of a device map, in which one device works at a time:
// a micro-batch, or a token of one, after the other.
func (ticks *Ticks) sequential(place []int) int64 {
	workload := &ticks.table.Workload
	var batch, token, slowest int64
	update := make(map[int]int64)
	for unit, device := range place {
		took := ticks.Unit(unit, device)
		batch += took.Forward + took.Recompute + took.Backward
		token += took.Token
		if workload.Mode == costmodel.Train {
			update[device] += ticks.Update(place, unit)
			slowest = max(slowest, update[device])
		}
		if unit == 0 || place[unit-1] == device {
			continue
		}
		before, output := place[unit-1], ticks.table.Units[unit-1].Work.Output
		busy, latency := ticks.Message(before, device, output)
		batch += busy + latency
		token += ticks.Token(before, device, unit-1)
		if workload.Mode == costmodel.Train {
			busy, latency = ticks.Message(device, before, output)
			batch += busy + latency
		}
	}
	return max(1, workload.MicroBatches)*(batch+workload.NewTokens*token) + slowest
}
