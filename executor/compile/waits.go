package compile

import "github.com/devmap-dev/devmap/executor/program"

// order makes the last instruction wait for those of other streams that touched the buffer. A
// reader waits for its writer, a writer also for its readers. Buffers that share a place count as
// one if other streams touch both.
func (emitter *emitter) order(mode program.Mode, buffer int32) {
	buffer = emitter.placeOf(buffer)
	for int(buffer) >= len(emitter.written) {
		emitter.written = append(emitter.written, program.None)
		emitter.readers = append(emitter.readers, nil)
	}
	self := emitter.last()
	if writer := emitter.written[buffer]; writer != program.None {
		emitter.await(writer)
	}
	if mode == program.Read {
		if emitter.out.Instrs[self].Stream != 0 || emitter.moving[buffer] {
			emitter.readers[buffer] = append(emitter.readers[buffer], self)
		}
		return
	}
	emitter.release(buffer)
	emitter.written[buffer] = self
}

// placeOf is the buffer itself, or the one whose place it shares.
func (emitter *emitter) placeOf(buffer int32) int32 {
	if below, ok := emitter.above[buffer]; ok {
		return below
	}
	return buffer
}

// release has the last instruction wait until no other stream reads the buffer.
func (emitter *emitter) release(buffer int32) {
	if buffer = emitter.placeOf(buffer); int(buffer) >= len(emitter.readers) {
		return
	}
	for _, reader := range emitter.readers[buffer] {
		emitter.await(reader)
	}
	emitter.readers[buffer] = emitter.readers[buffer][:0]
}

// await makes the last instruction wait for an earlier one of another stream, unless its stream has
// already waited for that or a later one.
func (emitter *emitter) await(earlier int32) {
	self := emitter.last()
	stream, other := emitter.out.Instrs[self].Stream, emitter.out.Instrs[earlier].Stream
	if stream == other || emitter.awaited[stream][other] >= earlier {
		return
	}
	emitter.awaited[stream][other] = earlier
	emitter.wait(program.Wait{Instr: earlier, Stream: other})
}

func (emitter *emitter) wait(wait program.Wait) {
	emitter.out.Waits = append(emitter.out.Waits, wait)
	emitter.out.Instrs[emitter.last()].EndWait++
}

// settle fills in the waits between devices.
func (emitter *emitter) settle() {
	for _, wait := range emitter.later {
		emitter.out.Waits[wait.at] = program.Wait{Instr: emitter.ended[wait.round], Stream: 0}
	}
}
