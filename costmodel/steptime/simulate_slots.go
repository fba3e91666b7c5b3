package steptime

// slots is how many messages a channel of devmap's own engine holds ([costmodel.StageRules]).
const slots = 2

// passTicks are a stage's ticks of one pass, frees the time until the slot that it read is free:
// the first unit that copies it has run. The kernels from the first that writes the send buffer
// take last: they wait until the previous message has left it.
type passTicks struct{ total, frees, last int64 }

// job is one pass of a micro-batch through a stage, its input and its message.
type job struct {
	passTicks
	alone  bool // the unit that reads the slot writes the buffer
	in     *channel
	out    *channel
	buffer *buffer // that out is sent from
	moved  *movedPass

	began, ended int64 // when its input was there, and when it was through, the last time
}

// buffer holds one message until it has left.
type buffer struct {
	owner  *simulatedRank
	queued bool // it waits to be sent
	left   int64
}

// channel carries one kind of message: a send waits for a slot, a receive for the message.
type channel struct {
	stream        *stream
	to            *simulatedRank
	busy, latency int64
	number        int
	endless       bool    // it has a slot for every message
	free          []int64 // since when slots are free
	arrived       []int64 // arrival times of messages
}

// stream sends what one rank has for another, one message after the other.
type stream struct {
	from    *simulatedRank
	to      int // the other's number
	clock   int64
	waiting []waiting
	few     [4]waiting // the first of them
}

type waiting struct {
	channel *channel
	buffer  *buffer
	ready   int64
}

// send leaves a message to the stream.
func (out *channel) send(from *buffer, ready int64) {
	from.queued = true
	out.stream.waiting = append(out.stream.waiting, waiting{out, from, ready})
	out.stream.run()
}

// run sends all messages that have a slot.
func (stream *stream) run() {
	for len(stream.waiting) > 0 {
		next := &stream.waiting[0]
		out := next.channel
		start := max(stream.clock, next.ready)
		if !out.endless {
			if len(out.free) == 0 {
				return
			}
			start = max(start, out.free[0])
			out.free = out.free[:copy(out.free, out.free[1:])]
		}
		stream.clock = start + out.busy
		out.arrived = append(out.arrived, stream.clock+out.latency)
		next.buffer.queued, next.buffer.left = false, stream.clock
		stream.waiting = stream.waiting[:copy(stream.waiting, stream.waiting[1:])]
	}
}

// release gives a slot back.
func (out *channel) release(at int64) {
	if !out.endless {
		out.free = append(out.free, at)
		out.stream.run()
	}
}

// simulatedRank is a rank of the simulation, its place in its rows of actions, and its clock.
type simulatedRank struct {
	clock                int64
	streams              []int // the sending ones, by number
	few                  [4]int
	rows                 []row
	row, action          int
	times                int64 // of the row are over
	half                 bool  // the action has run but for its last kernels
	untilRow, untilTimes int64 // it goes no further
	copies               copies
}

// row is a row of jobs that a rank runs times over ([order.Phase]).
type row struct {
	jobs  []*job
	times int64
}

// advance runs all that a rank can run; false if nothing.
func (rank *simulatedRank) advance() (ran bool) {
	for rank.row < len(rank.rows) {
		if rank.action == 0 && !rank.half && int64(rank.row) == rank.untilRow && rank.times == rank.untilTimes {
			return ran
		}
		now := rank.rows[rank.row].jobs[rank.action]
		if !rank.half {
			if !now.begin(rank) {
				return ran
			}
			ran = true
		}
		if !now.end(rank) {
			return ran
		}
		ran = true
		rank.next()
	}
	return ran
}

// next continues to the next action.
func (rank *simulatedRank) next() {
	rank.action++
	if rank.action < len(rank.rows[rank.row].jobs) {
		return
	}
	rank.action = 0
	rank.times++
	if rank.times == rank.rows[rank.row].times {
		rank.row, rank.times = rank.row+1, 0
	}
}

// begin runs a job up to its last kernels, once its message is there.
func (now *job) begin(rank *simulatedRank) bool {
	if in := now.in; in != nil {
		if len(in.arrived) == 0 {
			return false
		}
		rank.clock = max(rank.clock, in.arrived[0])
		if in.endless {
			in.arrived = in.arrived[1:]
		} else {
			in.arrived = in.arrived[:copy(in.arrived, in.arrived[1:])]
		}
	}
	now.began = rank.clock
	frees := now.began + now.frees
	if moved := now.moved; moved != nil {
		moved.run(rank, 0, moved.writer)
		frees = moved.frees
	} else {
		rank.clock += now.total - now.last
	}
	if now.in != nil && !now.alone {
		now.in.release(frees)
	}
	rank.half = true
	return true
}

// end runs its last kernels, once the buffer that they write is free.
func (now *job) end(rank *simulatedRank) bool {
	if now.out != nil {
		if now.buffer.queued {
			return false
		}
		rank.clock = max(rank.clock, now.buffer.left)
	}
	frees, sent := rank.clock+now.last-(now.total-now.frees), rank.clock+now.last
	if moved := now.moved; moved != nil {
		moved.run(rank, moved.writer, len(moved.stage.units))
		frees, sent = moved.frees, moved.sent
	} else {
		rank.clock += now.last
	}
	if now.in != nil && now.alone {
		now.in.release(frees)
	}
	if now.out != nil {
		now.out.send(now.buffer, sent)
	}
	rank.half, now.ended = false, rank.clock
	return true
}
