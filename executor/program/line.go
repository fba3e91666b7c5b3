package program

import "strconv"

// Place names an instruction as its line begins, D.N: the device's number, and the instruction's
// index there, from 0.
func (program *Program) Place(index int32) string {
	return string(program.appendPlace(nil, index))
}

// Line returns an instruction as a line of text.
func (program *Program) Line(index int32) string {
	return string(program.appendLine(nil, index))
}

func (program *Program) appendPlace(line []byte, index int32) []byte {
	device := &program.Devices[program.Instrs[index].Device]
	line = strconv.AppendInt(line, int64(device.ID), 10)
	line = append(line, '.')
	return strconv.AppendInt(line, int64(index-device.First), 10)
}

// appendLine writes D.N STREAM OP [ROUTINE] [mbK] [CH#SEQ] BUFFERS… [after
// STREAM:D.N …].
func (program *Program) appendLine(line []byte, index int32) []byte {
	instr := &program.Instrs[index]
	line = append(program.appendPlace(line, index), ' ')
	line = append(line, program.Devices[instr.Device].Streams[instr.Stream]...)
	line = append(line, ' ')
	line = append(line, instr.Op.String()...)
	if instr.Routine >= 0 {
		line = append(append(line, ' '), program.Routines[instr.Routine].Name...)
	}
	if instr.MicroBatch >= 0 {
		line = strconv.AppendInt(append(line, " mb"...), int64(instr.MicroBatch), 10)
	}
	if instr.Channel >= 0 {
		line = append(append(line, ' '), program.Channels[instr.Channel].Name...)
		line = strconv.AppendInt(append(line, '#'), int64(instr.Sequence), 10)
	}
	for _, access := range program.Accesses[instr.FirstAccess:instr.EndAccess] {
		line = program.appendAccess(append(line, ' '), access)
	}
	waits := program.Waits[instr.FirstWait:instr.EndWait]
	if len(waits) > 0 {
		line = append(line, " after"...)
	}
	for _, wait := range waits {
		line = program.appendWait(append(line, ' '), wait)
	}
	return line
}

// appendAccess writes NAME for a read, >NAME for a write and +NAME for an accumulation.
func (program *Program) appendAccess(line []byte, access Access) []byte {
	switch access.Mode {
	case Write:
		line = append(line, '>')
	case Accumulate:
		line = append(line, '+')
	case Read:
	}
	return append(line, program.Buffers[access.Buffer].Name...)
}

// appendWait writes STREAM:D.N.
func (program *Program) appendWait(line []byte, wait Wait) []byte {
	device := program.Instrs[wait.Instr].Device
	line = append(line, program.Devices[device].Streams[wait.Stream]...)
	return program.appendPlace(append(line, ':'), wait.Instr)
}
