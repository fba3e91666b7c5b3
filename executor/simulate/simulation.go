package simulate

import "github.com/devmap-dev/devmap/executor/program"

// player plays a program by events. Every lane shows its next instruction; one
// whose predecessors have all been played has a start, and waits in a queue by
// that time, from which the earliest is played. An instruction ends no earlier
// than it starts, so those that it makes ready start no earlier than it: they are
// played in order of time, and before what waits for them at the same moment.
//
// A lane whose next instruction lacks a predecessor is parked there and looked at
// again when that one has been played, from the predecessor on that it lacked:
// every edge is looked at once, or twice where it was waited for.
type player struct {
	prog *program.Program
	lanes
	messages
	start, end []int64 // start is -1 until the instruction is played
	cause      []int32 // whose end let it start, or None
	order      []int32 // the instructions as they were played

	shown  []shown // by lane
	parked []int32 // by instruction: the first lane that waits for it, and 1 more
	queue  queue
	turns  *turns
}

// shown is a lane's next instruction: when it starts by what was looked at so
// far, and what let it.
type shown struct {
	time    int64
	cause   int32
	stage   int32 // of what it waits for: its waits, then its message, then all
	parking int32 // the next lane that is parked where this one is, and 1 more
	lacks   int32 // what it is parked at, or None where nothing in the program is
}

// ready is shown.stage where nothing is lacking.
const ready = int32(-1)

func newPlayer(prog *program.Program) *player {
	count := len(prog.Instrs)
	times := make([]int64, 2*count)
	played := &player{
		prog: prog, lanes: newLanes(prog), messages: newMessages(prog),
		start: times[:count], end: times[count:],
		cause: make([]int32, count), parked: make([]int32, count), order: make([]int32, 0, count),
	}
	for i := range played.start {
		played.start[i] = -1
	}
	played.shown = make([]shown, len(played.head))
	return played
}

func (played *player) run() {
	for lane := range played.head {
		played.shown[lane].cause = program.None
		played.look(int32(lane))
	}
	for len(played.queue) > 0 {
		next := played.queue.pop()
		if played.waits(next) {
			continue
		}
		i := played.head[next.lane]
		partner := played.partner(i)
		played.play(next.lane, i, next.time)
		if partner == program.None {
			played.after(next.lane, i)
			continue
		}
		// One event: both start now, and the message is there after its latency.
		other := played.of(&played.prog.Instrs[partner])
		played.play(other, partner, next.time)
		played.after(next.lane, i)
		played.after(other, partner)
	}
}

// play gives a lane's next instruction its time.
func (played *player) play(lane, i int32, time int64) {
	instr, own := &played.prog.Instrs[i], &played.shown[lane]
	played.start[i], played.cause[i] = time, own.cause
	played.end[i] = time + ticks(played.prog, instr)
	if instr.Op == program.Recv && met(played.prog, instr) {
		send := &played.prog.Instrs[played.partner(i)]
		played.end[i] += ticks(played.prog, send) + played.prog.Channels[instr.Channel].Latency
	}
	played.order = append(played.order, i)
	*own = shown{time: played.end[i], cause: i}
	played.head[lane] = played.next[i]
}

// after looks at the lanes that an instruction held up: its own and those that
// are parked at it.
func (played *player) after(lane, i int32) {
	played.look(lane)
	for at := played.parked[i]; at != 0; {
		following := played.shown[at-1].parking
		played.look(at - 1)
		at = following
	}
}

// look goes on with what a lane's next instruction waits for, and queues it
// where that is all there.
func (played *player) look(lane int32) {
	i, own := played.head[lane], &played.shown[lane]
	if i == program.None {
		return
	}
	instr := &played.prog.Instrs[i]
	waits := instr.EndWait - instr.FirstWait
	for ; own.stage < waits; own.stage++ {
		if !played.past(lane, played.prog.Waits[instr.FirstWait+own.stage].Instr, 0) {
			return
		}
	}
	if other, later, needed := played.message(instr); needed && !played.past(lane, other, later) {
		return
	}
	own.stage = ready
	if !met(played.prog, instr) {
		played.queue.push(event{own.time, lane})
		return
	}
	played.meet(lane, i)
}

// past goes past a predecessor, after whose end so much time has to go by, or
// parks the lane at it.
func (played *player) past(lane, other int32, later int64) bool {
	own := &played.shown[lane]
	if other < 0 || int(other) >= len(played.start) {
		own.lacks = program.None
		return false
	}
	if played.start[other] < 0 {
		own.lacks, own.parking, played.parked[other] = other, played.parked[other], lane+1
		return false
	}
	if end := played.end[other] + later; end > own.time || own.cause == program.None {
		own.time, own.cause = end, other
	}
	return true
}

// message is what an instruction of a channel with slots waits for besides: a
// recv for the send and the message's latency, a send for the slot to be free.
func (played *player) message(instr *program.Instr) (other int32, later int64, needed bool) {
	if instr.Channel < 0 {
		return program.None, 0, false
	}
	channel := &played.prog.Channels[instr.Channel]
	switch {
	case channel.Slots == 0:
	case instr.Op == program.Recv:
		return played.in(played.send, instr.Channel, instr.Sequence), channel.Latency, true
	case instr.Op == program.Send && instr.Sequence >= channel.Slots:
		return played.in(played.free, instr.Channel, instr.Sequence-channel.Slots), 0, true
	}
	return program.None, 0, false
}

// met reports an instruction that is one event with its partner.
func met(prog *program.Program, instr *program.Instr) bool {
	return (instr.Op == program.Send || instr.Op == program.Recv) && instr.Channel >= 0 && prog.Channels[instr.Channel].Slots == 0
}

// partner is the other end of a message without slots, or None.
func (played *player) partner(i int32) int32 {
	instr := &played.prog.Instrs[i]
	switch {
	case !met(played.prog, instr):
		return program.None
	case instr.Op == program.Send:
		return played.in(played.recv, instr.Channel, instr.Sequence)
	}
	return played.in(played.send, instr.Channel, instr.Sequence)
}

// meet queues the two ends of a message without slots once both are ready, to
// start when the later one is.
func (played *player) meet(lane, i int32) {
	partner := played.partner(i)
	own := &played.shown[lane]
	own.lacks = partner
	if partner == program.None || played.partner(partner) != i {
		return
	}
	other := played.of(&played.prog.Instrs[partner])
	if played.head[other] != partner || played.shown[other].stage != ready {
		return
	}
	last := &played.shown[other]
	if last.time > own.time {
		own.time, own.cause = last.time, last.cause
	} else {
		last.time, last.cause = own.time, own.cause
	}
	played.queue.push(event{own.time, lane})
}
