package simulate

import "github.com/devmap-dev/devmap/executor/program"

// simulation runs a program by events. Every lane shows its next instruction. If all predecessors
// of that have been simulated, it has a start and waits in a queue, from which the earliest is
// simulated. An instruction ends no earlier than it starts, so those that it makes ready start no
// earlier than it. They are simulated in order of time, and before those that wait for them at the
// same moment.
//
// If the next instruction lacks a predecessor, the lane is parked there. It is looked at again,
// from that predecessor on, when the predecessor has been simulated. So every edge is looked at
// once, or twice if a lane waited for it.
type simulation struct {
	prog *program.Program
	lanes
	messages
	start, end []int64 // start is -1 until the instruction is simulated
	cause      []int32 // whose end let it start, or None
	order      []int32 // the instructions as they were simulated

	shown  []shown // by lane
	parked []int32 // by instruction: the first lane that waits for it, plus 1
	queue  queue
	turns  *turns
}

// shown is a lane's next instruction: its start as far as known, and what determined that.
type shown struct {
	time    int64
	cause   int32
	stage   int32 // of what it waits for: its waits, then its message, then all
	parking int32 // the next lane that is parked at the same instruction, plus 1
	lacks   int32 // what it is parked at, or None if the program has no such instruction
}

// ready is shown.stage if nothing is lacking.
const ready = int32(-1)

func newSimulation(prog *program.Program) *simulation {
	count := len(prog.Instrs)
	times := make([]int64, 2*count)
	sim := &simulation{
		prog: prog, lanes: newLanes(prog), messages: newMessages(prog),
		start: times[:count], end: times[count:],
		cause: make([]int32, count), parked: make([]int32, count), order: make([]int32, 0, count),
	}
	for i := range sim.start {
		sim.start[i] = -1
	}
	sim.shown = make([]shown, len(sim.head))
	return sim
}

func (sim *simulation) run() {
	for lane := range sim.head {
		sim.shown[lane].cause = program.None
		sim.look(int32(lane))
	}
	for len(sim.queue) > 0 {
		next := sim.queue.pop()
		if sim.waits(next) {
			continue
		}
		i := sim.head[next.lane]
		partner := sim.partner(i)
		sim.execute(next.lane, i, next.time)
		if partner == program.None {
			sim.after(next.lane, i)
			continue
		}
		// One event: both start now, and the message is there after its latency.
		other := sim.of(&sim.prog.Instrs[partner])
		sim.execute(other, partner, next.time)
		sim.after(next.lane, i)
		sim.after(other, partner)
	}
}

// execute simulates a lane's next instruction at a time.
func (sim *simulation) execute(lane, i int32, time int64) {
	instr, own := &sim.prog.Instrs[i], &sim.shown[lane]
	sim.start[i], sim.cause[i] = time, own.cause
	sim.end[i] = time + ticks(sim.prog, instr)
	if instr.Op == program.Recv && met(sim.prog, instr) {
		send := &sim.prog.Instrs[sim.partner(i)]
		sim.end[i] += ticks(sim.prog, send) + sim.prog.Channels[instr.Channel].Latency
	}
	sim.order = append(sim.order, i)
	*own = shown{time: sim.end[i], cause: i}
	sim.head[lane] = sim.next[i]
}

// after looks at the lanes that an instruction held up: its own and those that
// are parked at it.
func (sim *simulation) after(lane, i int32) {
	sim.look(lane)
	for at := sim.parked[i]; at != 0; {
		following := sim.shown[at-1].parking
		sim.look(at - 1)
		at = following
	}
}

// look continues with the predecessors of a lane's next instruction, and queues it if all are
// there.
func (sim *simulation) look(lane int32) {
	i, own := sim.head[lane], &sim.shown[lane]
	if i == program.None {
		return
	}
	instr := &sim.prog.Instrs[i]
	waits := instr.EndWait - instr.FirstWait
	for ; own.stage < waits; own.stage++ {
		if !sim.past(lane, sim.prog.Waits[instr.FirstWait+own.stage].Instr, 0) {
			return
		}
	}
	if other, later, needed := sim.message(instr); needed && !sim.past(lane, other, later) {
		return
	}
	own.stage = ready
	if !met(sim.prog, instr) {
		sim.queue.push(event{own.time, lane})
		return
	}
	sim.meet(lane, i)
}

// past moves the lane's start to at least later after the end of a predecessor. If that has not
// been simulated, it parks the lane there and returns false.
func (sim *simulation) past(lane, other int32, later int64) bool {
	own := &sim.shown[lane]
	if other < 0 || int(other) >= len(sim.start) {
		own.lacks = program.None
		return false
	}
	if sim.start[other] < 0 {
		own.lacks, own.parking, sim.parked[other] = other, sim.parked[other], lane+1
		return false
	}
	if end := sim.end[other] + later; end > own.time || own.cause == program.None {
		own.time, own.cause = end, other
	}
	return true
}

// message returns what an instruction of a channel with slots also waits for. A recv waits for its
// send and the message's latency, a send for the free of its slot.
func (sim *simulation) message(instr *program.Instr) (other int32, later int64, needed bool) {
	if instr.Channel < 0 {
		return program.None, 0, false
	}
	channel := &sim.prog.Channels[instr.Channel]
	switch {
	case channel.Slots == 0:
	case instr.Op == program.Recv:
		return sim.in(sim.send, instr.Channel, instr.Sequence), channel.Latency, true
	case instr.Op == program.Send && instr.Sequence >= channel.Slots:
		return sim.in(sim.free, instr.Channel, instr.Sequence-channel.Slots), 0, true
	}
	return program.None, 0, false
}

// met reports whether an instruction is one event with its partner.
func met(prog *program.Program, instr *program.Instr) bool {
	return (instr.Op == program.Send || instr.Op == program.Recv) && instr.Channel >= 0 && prog.Channels[instr.Channel].Slots == 0
}

// partner returns the other end of a message without slots, or None.
func (sim *simulation) partner(i int32) int32 {
	instr := &sim.prog.Instrs[i]
	switch {
	case !met(sim.prog, instr):
		return program.None
	case instr.Op == program.Send:
		return sim.in(sim.recv, instr.Channel, instr.Sequence)
	}
	return sim.in(sim.send, instr.Channel, instr.Sequence)
}

// meet queues the two ends of a message without slots once both are ready, to
// start when the later one is.
func (sim *simulation) meet(lane, i int32) {
	partner := sim.partner(i)
	own := &sim.shown[lane]
	own.lacks = partner
	if partner == program.None || sim.partner(partner) != i {
		return
	}
	other := sim.of(&sim.prog.Instrs[partner])
	if sim.head[other] != partner || sim.shown[other].stage != ready {
		return
	}
	last := &sim.shown[other]
	if last.time > own.time {
		own.time, own.cause = last.time, last.cause
	} else {
		last.time, last.cause = own.time, own.cause
	}
	sim.queue.push(event{own.time, lane})
}
