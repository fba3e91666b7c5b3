package simulate

import "github.com/devmap-dev/devmap/executor/program"

// lanes are the streams of all devices with consecutive numbers. Each is a list of its
// instructions.
type lanes struct {
	first []int32 // of each device
	head  []int32 // the next instruction of a lane, or None
	next  []int32 // the instruction after this one in its lane, or None
}

func newLanes(prog *program.Program) lanes {
	all := lanes{first: make([]int32, len(prog.Devices)), next: make([]int32, len(prog.Instrs))}
	count := int32(0)
	for device := range prog.Devices {
		all.first[device] = count
		count += int32(len(prog.Devices[device].Streams))
	}
	all.head = make([]int32, count)
	for lane := range all.head {
		all.head[lane] = program.None
	}
	for i := int32(len(prog.Instrs)) - 1; i >= 0; i-- {
		lane := all.of(&prog.Instrs[i])
		all.next[i], all.head[lane] = all.head[lane], i
	}
	return all
}

// of returns an instruction's lane.
func (all *lanes) of(instr *program.Instr) int32 { return all.first[instr.Device] + instr.Stream }

// messages finds the send, the recv and the free of a channel's message. Its tables are as long as
// the channel has instructions; larger numbers have none.
type messages struct {
	first            []int32 // of each channel, and the end of the last
	send, recv, free []int32
}

func newMessages(prog *program.Program) messages {
	all := messages{first: make([]int32, len(prog.Channels)+1)}
	for i := range prog.Instrs {
		if channel := prog.Instrs[i].Channel; channel >= 0 {
			all.first[channel+1]++
		}
	}
	for channel := range prog.Channels {
		all.first[channel+1] += all.first[channel]
	}
	size := all.first[len(prog.Channels)]
	tables := make([]int32, 3*size)
	for i := range tables {
		tables[i] = program.None
	}
	all.send, all.recv, all.free = tables[:size], tables[size:2*size], tables[2*size:]
	for i := range prog.Instrs {
		instr := &prog.Instrs[i]
		at := all.index(instr.Channel, instr.Sequence)
		switch {
		case at < 0:
		case instr.Op == program.Send:
			all.send[at] = int32(i)
		case instr.Op == program.Recv:
			all.recv[at] = int32(i)
		case instr.Op == program.Free:
			all.free[at] = int32(i)
		}
	}
	return all
}

func (all *messages) index(channel, sequence int32) int32 {
	if channel < 0 || sequence < 0 || sequence >= all.first[channel+1]-all.first[channel] {
		return -1
	}
	return all.first[channel] + sequence
}

// in returns the instruction of a message in one of the tables, or None.
func (all *messages) in(table []int32, channel, sequence int32) int32 {
	if at := all.index(channel, sequence); at >= 0 {
		return table[at]
	}
	return program.None
}
