package compile

import (
	"strconv"

	"github.com/devmap-dev/devmap/executor/program"
)

// emitter writes the instructions of one device after the other, and the waits between a device's
// streams.
type emitter struct {
	*compiler
	device  *device
	streams map[string]int32 // but for compute
	// By buffer: the last instruction that wrote it, and the instructions of other streams that
	// have read it since.
	written []int32
	readers [][]int32
	// awaited[a][b] is the last instruction of stream b that stream a has
	// waited for.
	awaited [][]int32
	// ended is the last instruction of each round of a micro-batch or token under a device map.
	// later lists waits for rounds that have no such instruction yet.
	ended map[int]int32
	later []laterWait
}

// laterWait is a wait, Waits[at], for the end of a round on a device that is not lowered yet.
type laterWait struct{ at, round int }

// begin is the device's first instruction.
func (emitter *emitter) begin(device *device) {
	emitter.device, emitter.streams = device, make(map[string]int32)
	emitter.awaited = nil
	emitter.stream("compute")
}

func (emitter *emitter) made() *program.Device { return &emitter.out.Devices[emitter.device.index] }

// stream adds a stream to the device.
func (emitter *emitter) stream(name string) int32 {
	made := emitter.made()
	made.Streams = append(made.Streams, name)
	for index := range emitter.awaited {
		emitter.awaited[index] = append(emitter.awaited[index], program.None)
	}
	row := make([]int32, len(made.Streams))
	for index := range row {
		row[index] = program.None
	}
	emitter.awaited = append(emitter.awaited, row)
	return int32(len(made.Streams) - 1)
}

// towards returns the stream that sends to a device.
func (emitter *emitter) towards(to int32) int32 { return emitter.named("to" + strconv.Itoa(int(to))) }

// named returns the stream of a name, and adds it on first use.
func (emitter *emitter) named(name string) int32 {
	stream, known := emitter.streams[name]
	if !known {
		stream = emitter.stream(name)
		emitter.streams[name] = stream
	}
	return stream
}

// open begins an instruction on the compute stream. Accesses and waits are added to it until the
// next one begins.
func (emitter *emitter) open(op program.Op, ticks int64) *program.Instr {
	out := emitter.out
	accesses, waits := int32(len(out.Accesses)), int32(len(out.Waits))
	out.Instrs = append(out.Instrs, program.Instr{
		Device: emitter.device.index, Op: op, Routine: program.None, MicroBatch: program.None, Channel: program.None, Ticks: ticks,
		FirstAccess: accesses, EndAccess: accesses, FirstWait: waits, EndWait: waits,
	})
	return &out.Instrs[len(out.Instrs)-1]
}

func (emitter *emitter) last() int32 {
	return int32(len(emitter.out.Instrs) - 1)
}

// touch adds accesses to the last instruction, with the waits that they need. Every access waits
// for writes of other streams. A write also waits for their reads.
func (emitter *emitter) touch(mode program.Mode, buffers ...int32) {
	for _, buffer := range buffers {
		if buffer == program.None {
			continue
		}
		out := emitter.out
		out.Accesses = append(out.Accesses, program.Access{Buffer: buffer, Mode: mode})
		out.Instrs[emitter.last()].EndAccess++
		emitter.order(mode, buffer)
	}
}

func (emitter *emitter) read(buffers ...int32)  { emitter.touch(program.Read, buffers...) }
func (emitter *emitter) write(buffers ...int32) { emitter.touch(program.Write, buffers...) }
func (emitter *emitter) add(buffers ...int32)   { emitter.touch(program.Accumulate, buffers...) }

// run begins an instruction of a routine, which reads its weights.
func (emitter *emitter) run(op program.Op, routine *routine, microBatch int32, ticks int64) {
	instr := emitter.open(op, ticks)
	instr.Routine, instr.MicroBatch = routine.index, microBatch
	emitter.weights(routine)
}

// weights reads the weights that a routine's unit owns or shares. Units that only pass the stream
// have no kernel that reads weights.
func (emitter *emitter) weights(routine *routine) {
	unit := &emitter.units[routine.unit]
	if unit.Passes {
		return
	}
	emitter.read(unit.weights)
	for _, number := range unit.ties {
		if copied := emitter.device.copies[number]; copied != nil {
			emitter.read(copied.weights)
		} else {
			emitter.read(emitter.units[emitter.compiler.ties[number].Owner].weights)
		}
	}
}
