package schedule

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// ready reports whether the other end of an instruction's channel is queued far enough. Message k
// takes its slot after message k−slots has freed it. On a channel without slots, the receive first
// says that it is there, and the send copies straight into its buffers. The board's lock must be
// held.
func (lane *lane) ready(instr *program.Instr) bool {
	if instr.Op != program.Send && instr.Op != program.Recv {
		return true
	}
	ends, slots := &lane.ends[instr.Channel], lane.Program.Channels[instr.Channel].Slots
	switch {
	case instr.Op == program.Recv && slots == 0 && !lane.midway:
		return true
	case instr.Op == program.Recv:
		return lane.board.issued[ends.sends[instr.Sequence]]
	case slots == 0:
		return lane.board.came[ends.receives[instr.Sequence]]
	}
	return instr.Sequence < slots || lane.board.issued[ends.frees[instr.Sequence-slots]]
}

// receive makes the queue wait for a message. On a channel without slots it first lets the sender
// know that the buffers are ready.
func (lane *lane) receive(index int32, instr *program.Instr) (whole bool, err error) {
	if lane.Program.Channels[instr.Channel].Slots == 0 && !lane.midway {
		if err := lane.queue.Record(lane.events[index].came); err != nil {
			return false, err
		}
		lane.board.post(func() { lane.board.came[index] = true })
		return false, nil
	}
	return true, lane.queue.Await(lane.events[lane.ends[instr.Channel].sends[instr.Sequence]].ended)
}

// send copies a message into the slot of its receive, on the sender's queue. No other function
// copies bytes from one arena to another. The rest of the slot is poisoned.
func (lane *lane) send(index int32, instr *program.Instr) error {
	ends, slots := &lane.ends[instr.Channel], lane.Program.Channels[instr.Channel].Slots
	var free Event
	if slots == 0 {
		free = lane.events[ends.receives[instr.Sequence]].came
	} else if instr.Sequence >= slots {
		free = lane.events[ends.frees[instr.Sequence-slots]].ended
	}
	if free != nil {
		if err := lane.queue.Await(free); err != nil {
			return err
		}
	}
	link := lane.links[linkKey{lane.Of[index], lane.Program.Channels[instr.Channel].To}]
	from := lane.touched(index, program.Read)
	for _, into := range lane.touched(ends.receives[instr.Sequence], program.Write) {
		for len(from) > 0 && into.bytes > 0 {
			count := min(from[0].bytes, into.bytes)
			if err := link.Copy(into.at, from[0].at, count); err != nil {
				return err
			}
			into = into.behind(count)
			if from[0] = from[0].behind(count); from[0].bytes == 0 {
				from = from[1:]
			}
		}
		if err := link.Fill(into.at, executor.Poison, into.bytes); err != nil {
			return err
		}
	}
	return link.Arrive()
}

// span is bytes of an arena.
type span struct {
	at    Address
	bytes int64
}

func (of span) behind(count int64) span { return span{of.at + Address(count), of.bytes - count} }

// touched returns the buffers that an instruction accesses in one mode.
func (of *Scheduler) touched(index int32, mode program.Mode) (all []span) {
	instr := &of.Program.Instrs[index]
	for _, access := range of.Program.Accesses[instr.FirstAccess:instr.EndAccess] {
		if access.Mode == mode {
			buffer := &of.Program.Buffers[access.Buffer]
			all = append(all, span{of.Devices[buffer.Device].Driver.Address(buffer.Offset), buffer.Bytes})
		}
	}
	return all
}
