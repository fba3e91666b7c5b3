package program

import "fmt"

// begin opens the next instruction. Its device, numbers and names follow.
func (build *builder) begin(id, number int32, stream []byte, op Op) error {
	device, err := build.device(id)
	if err != nil {
		return err
	}
	if len(build.program.Instrs) >= maxIndex {
		return fmt.Errorf("more than %d instructions", maxIndex)
	}
	streams := build.names[device].streams
	on, ok := streams[string(stream)]
	if !ok {
		on = int32(len(streams))
		if on >= maxStreams {
			return fmt.Errorf("%s: more than the %d streams that a device may have", quoted(string(stream)), maxStreams)
		}
		streams[string(stream)] = on
		build.program.Devices[device].Streams = append(build.program.Devices[device].Streams, string(stream))
	}
	accesses, waits := int32(len(build.program.Accesses)), int32(len(build.waits))
	build.program.Instrs = append(build.program.Instrs, Instr{
		Device: device, Stream: on, Op: op, Routine: None, MicroBatch: None, Channel: None,
		FirstAccess: accesses, EndAccess: accesses, FirstWait: waits, EndWait: waits,
	})
	build.numbers = append(build.numbers, number)
	build.places = append(build.places, build.at)
	return nil
}

// last returns the open instruction and its index.
func (build *builder) last() (*Instr, int32) {
	index := len(build.program.Instrs) - 1
	return &build.program.Instrs[index], int32(index)
}

// label names the open instruction as it is written.
func (build *builder) label() string {
	_, index := build.last()
	return build.labelOf(index)
}

func (build *builder) labelOf(index int32) string {
	id := build.program.Devices[build.program.Instrs[index].Device].ID
	return fmt.Sprintf("device %d, %d.%d", id, id, build.numbers[index])
}

func (build *builder) runs(routine []byte) {
	instr, index := build.last()
	found, ok := build.routines[string(routine)]
	if !ok {
		found = unknown
		build.fault(instr.Device, index, "%s: runs routine %s, which is not declared", build.label(), quoted(string(routine)))
	}
	instr.Routine = found
}

func (build *builder) message(channel []byte, sequence int32) {
	instr, index := build.last()
	found, ok := build.channels[string(channel)]
	if !ok {
		found = unknown
		build.fault(instr.Device, index, "%s: names channel %s, which is not declared", build.label(), quoted(string(channel)))
	}
	instr.Channel, instr.Sequence = found, sequence
}

func (build *builder) touches(buffer []byte, mode Mode) {
	instr, index := build.last()
	found, ok := build.names[instr.Device].buffers[string(buffer)]
	if !ok {
		why := "which the device does not declare"
		if _, channel := build.channels[string(buffer)]; channel {
			why = "a channel: want CHANNEL#SEQUENCE, or a buffer"
		}
		build.fault(instr.Device, index, "%s: names %s, %s", build.label(), quoted(string(buffer)), why)
		return
	}
	build.program.Accesses = append(build.program.Accesses, Access{found, mode})
	instr.EndAccess++
}

// waitsFor records a wait, which is resolved when all instructions are known.
func (build *builder) waitsFor(stream []byte, id, number int32) {
	name, ok := build.waitStreams[string(stream)]
	if !ok {
		name = int32(len(build.streamNames))
		build.waitStreams[string(stream)] = name
		build.streamNames = append(build.streamNames, string(stream))
	}
	instr, _ := build.last()
	build.waits = append(build.waits, writtenWait{id, number, name})
	instr.EndWait++
}
