package simulate_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/executor/program"
)

// costs are how long one micro-batch takes a stage, and a message its way.
type costs struct{ forward, backward, send, latency int64 }

// scheduled is a program of nothing but a schedule: a forward or a backward per
// action of the order, messages between neighbours, one byte of saved
// activations a micro-batch under way, one of each slot.
type scheduled struct {
	prog  program.Program
	took  costs
	names map[string]int32 // buffers
}

// schedule writes the program of a schedule, with so many slots a channel.
func schedule(kind costmodel.Schedule, slots int32, took costs) *program.Program {
	out := &scheduled{took: took, names: map[string]int32{}}
	out.prog.Timed = true
	stages := kind.Stages * max(1, kind.Chunks)
	for stage := range stages {
		out.prog.Routines = append(out.prog.Routines, program.Routine{Name: fmt.Sprint("s", stage)})
		if stage+1 < stages {
			here, there := int32(stage%kind.Stages), int32((stage+1)%kind.Stages)
			out.prog.Channels = append(out.prog.Channels,
				program.Channel{Name: fmt.Sprintf("act[%d]", stage+1), From: here, To: there, Slots: slots, Bytes: 1, Ticks: took.send, Latency: took.latency},
				program.Channel{Name: fmt.Sprintf("grad[%d]", stage), From: there, To: here, Slots: slots, Bytes: 1, Ticks: took.send, Latency: took.latency})
		}
	}
	for rank := range kind.Stages {
		device := program.Device{ID: int32(rank), Arena: 1 << 20, Budget: 1 << 20, Streams: []string{"compute", "down", "up", "further"}, First: int32(len(out.prog.Instrs))}
		for _, action := range order.Of(kind, rank) {
			out.action(int32(rank), int32(action.Chunk*kind.Stages+rank), int32(stages), action)
		}
		device.End = int32(len(out.prog.Instrs))
		out.prog.Devices = append(out.prog.Devices, device)
	}
	return &out.prog
}

// action is a forward or a backward of a stage: its message in, itself, its
// message out.
func (out *scheduled) action(device, stage, stages int32, action order.Action) {
	batch := int32(action.MicroBatch)
	saved := program.Access{Buffer: out.buffer(device, fmt.Sprintf("saved%d.%d", stage, batch), program.Saved), Mode: program.Write}
	op, ticks, in, to, stream := program.Forward, out.took.forward, 2*(stage-1), 2*stage, int32(1)
	if action.Kind == order.Backward {
		op, ticks, in, to, stream = program.Backward, out.took.backward, 2*stage+1, 2*stage-1, 2
		saved.Mode = program.Read
	}
	if action.Chunk > 0 {
		stream = 3
	}
	accesses := []program.Access{saved}
	received := in >= 0 && in < 2*(stages-1)
	if received {
		slot := out.buffer(device, fmt.Sprintf("%s.slot[%d]", out.prog.Channels[in].Name, batch%max(1, out.prog.Channels[in].Slots)), program.Slot)
		out.add(program.Instr{Device: device, Op: program.Recv, Channel: in, Sequence: batch}, program.Access{Buffer: slot, Mode: program.Write})
		accesses = append(accesses, program.Access{Buffer: slot, Mode: program.Read})
	}
	run := program.Instr{Device: device, Op: op, Routine: stage, MicroBatch: batch, Channel: program.None, Ticks: ticks}
	out.add(run, accesses...)
	if received {
		out.add(program.Instr{Device: device, Op: program.Free, Channel: in, Sequence: batch})
	}
	if to >= 0 && to < 2*(stages-1) {
		after := int32(len(out.prog.Instrs)) - 1
		if received {
			after--
		}
		out.prog.Waits = append(out.prog.Waits, program.Wait{Instr: after})
		out.add(program.Instr{Device: device, Stream: stream, Op: program.Send, Channel: to, Sequence: batch, FirstWait: int32(len(out.prog.Waits)) - 1})
	}
}

func (out *scheduled) add(instr program.Instr, accesses ...program.Access) {
	if instr.Op == program.Send || instr.Op == program.Recv || instr.Op == program.Free {
		instr.Routine, instr.MicroBatch = program.None, program.None
	}
	if instr.Op == program.Send {
		instr.Ticks = out.took.send
		instr.EndWait = instr.FirstWait + 1
	}
	instr.FirstAccess = int32(len(out.prog.Accesses))
	out.prog.Accesses = append(out.prog.Accesses, accesses...)
	instr.EndAccess = int32(len(out.prog.Accesses))
	out.prog.Instrs = append(out.prog.Instrs, instr)
}

func (out *scheduled) buffer(device int32, name string, class program.Class) int32 {
	key := fmt.Sprint(device, name)
	index, known := out.names[key]
	if !known {
		index = int32(len(out.prog.Buffers))
		out.names[key] = index
		out.prog.Buffers = append(out.prog.Buffers, program.Buffer{Device: device, Name: name, Offset: int64(index), Bytes: 1, Class: class})
	}
	return index
}
