package cpu

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// await returns when an instruction may begin: what it waits for has ended, and
// its channel is ready for it. Message k takes its slot when that was freed of
// the message k−slots. Without slots, a receive first says that it has come, and
// the send writes straight into what it names: the two are one event.
func (worker *worker) await(instr *program.Instr) error {
	waited, err := worker.board.await(func() bool { return worker.ended(instr) })
	worker.waited += waited
	if err != nil || instr.Op != program.Send && instr.Op != program.Recv {
		return err
	}
	traffic := &worker.board.channels[instr.Channel]
	slots := worker.program.Channels[instr.Channel].Slots
	ready := func() bool { return traffic.sent > instr.Sequence }
	switch {
	case instr.Op == program.Recv && slots == 0:
		worker.board.post(func() { traffic.awaited = instr.Sequence + 1 })
	case instr.Op == program.Send && slots == 0:
		ready = func() bool { return traffic.awaited > instr.Sequence }
	case instr.Op == program.Send:
		ready = func() bool { return traffic.freed[instr.Sequence%slots] == instr.Sequence/slots }
	}
	waited, err = worker.board.await(ready)
	worker.waited += waited
	return err
}

// ended reports that everything has ended that an instruction waits for.
func (worker *worker) ended(instr *program.Instr) bool {
	for _, wait := range worker.program.Waits[instr.FirstWait:instr.EndWait] {
		if worker.board.ended[worker.order.of[wait.Instr]] <= worker.order.place[wait.Instr] {
			return false
		}
	}
	return true
}

// end tells the board that an instruction has ended.
func (worker *worker) end(instr *program.Instr) {
	worker.board.ended[worker.stream]++
	switch instr.Op { //nolint:exhaustive // the others are no end of a channel
	case program.Send:
		worker.board.channels[instr.Channel].sent = instr.Sequence + 1
	case program.Free:
		freed := worker.board.channels[instr.Channel].freed
		if len(freed) > 0 { // without slots it frees nothing
			freed[int(instr.Sequence)%len(freed)]++
		}
	}
}

// send copies a message into the slot of its receive. It is the only place at
// which bytes go from one arena into another one. What a message leaves of its
// slot is poisoned.
func (worker *worker) send(index int32, instr *program.Instr) {
	from := worker.touched(index, program.Read)
	receive := worker.order.receives[instr.Channel][instr.Sequence]
	for _, into := range worker.touched(receive, program.Write) {
		for len(from) > 0 && len(into) > 0 {
			count := copy(into, from[0])
			into = into[count:]
			if from[0] = from[0][count:]; len(from[0]) == 0 {
				from = from[1:]
			}
		}
		fill(into, executor.Poison)
	}
}

// touched are the buffers that an instruction touches in one way.
func (worker *worker) touched(index int32, mode program.Mode) (all [][]byte) {
	instr := &worker.program.Instrs[index]
	for _, access := range worker.program.Accesses[instr.FirstAccess:instr.EndAccess] {
		if access.Mode == mode {
			buffer := &worker.program.Buffers[access.Buffer]
			all = append(all, worker.arenas[buffer.Device][buffer.Offset:buffer.Offset+buffer.Bytes])
		}
	}
	return all
}
