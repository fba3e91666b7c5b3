package compile

import "github.com/devmap-dev/devmap/executor/program"

// rings says which set of saved activations each micro-batch in flight has.
type rings struct {
	free [][]bool // by chunk
	held [][]int  // by chunk and micro-batch
}

func newRings(device *device) *rings {
	out := &rings{}
	for _, stage := range device.stages {
		out.free = append(out.free, make([]bool, stage.depth))
		for slot := range stage.depth {
			out.free[stage.chunk][slot] = true
		}
		out.held = append(out.held, make([]int, len(stage.forwards)))
	}
	return out
}

// take gives a micro-batch the lowest set that is free.
func (rings *rings) take(stage *stage, microBatch int32) int {
	for slot, free := range rings.free[stage.chunk] {
		if free {
			rings.free[stage.chunk][slot], rings.held[stage.chunk][microBatch] = false, slot
			return slot
		}
	}
	return 0 // there are as many as were ever in flight
}

func (rings *rings) give(stage *stage, microBatch int32) int {
	slot := rings.held[stage.chunk][microBatch]
	rings.free[stage.chunk][slot] = true
	return slot
}

// forward runs a micro-batch through a stage. Every unit writes its output into
// the input that the next unit keeps, or, where units add to it in place, the
// next that keeps one; the stage's last into what is sent.
func (emitter *emitter) forward(stage *stage, microBatch int32, slot int) {
	for number := range stage.routines {
		routine := &stage.routines[number]
		var sequence, message int32 = 0, program.None
		if number == 0 && stage.act != nil {
			sequence, message = emitter.receive(stage.act, 0, microBatch)
		}
		emitter.run(program.Forward, routine, microBatch, routine.ticks.Forward)
		emitter.read(emitter.units[routine.unit].feed)
		if number == 0 {
			emitter.read(message)
			emitter.write(routine.input[slot])
		} else {
			emitter.read(routine.input[slot])
		}
		emitter.write(routine.saved[slot], routine.forward)
		emitter.result(stage, number, slot)
		if message != program.None {
			emitter.free(stage.act, sequence)
		}
	}
	if stage.actOut != nil {
		emitter.send(stage.actOut, microBatch, stage.out)
	}
}

// run begins an instruction of a routine, which reads its weights.
func (emitter *emitter) run(op program.Op, routine *routine, microBatch int32, ticks int64) {
	instr := emitter.open(op, ticks)
	instr.Routine, instr.MicroBatch = routine.index, microBatch
	emitter.weights(routine)
}

// result is what a forward in training hands on.
func (emitter *emitter) result(stage *stage, number, slot int) {
	routine := &stage.routines[number]
	buffer := stage.out
	if routine.target >= 0 {
		buffer = stage.routines[routine.target].input[slot]
	}
	if stage.last && number == len(stage.routines)-1 {
		// The losses of all micro-batches add up.
		if emitter.began(emitter.device.result) {
			emitter.add(emitter.device.result)
		} else {
			emitter.write(emitter.device.result)
		}
		return
	}
	if number == 0 || routine.Input > 0 {
		emitter.write(buffer)
	} else {
		emitter.add(buffer)
	}
}

// began reports a buffer that has been written.
func (emitter *emitter) began(buffer int32) bool {
	return buffer >= 0 && int(buffer) < len(emitter.written) && emitter.written[buffer] != program.None
}

// backward runs a micro-batch's gradient back through a stage, which changes
// it in place from the last unit to the first.
func (emitter *emitter) backward(stage *stage, microBatch int32, slot int) {
	for number := len(stage.routines) - 1; number >= 0; number-- {
		routine := &stage.routines[number]
		var sequence, message int32 = 0, program.None
		if number == len(stage.routines)-1 && stage.grad != nil {
			sequence, message = emitter.receive(stage.grad, 0, microBatch)
		}
		if routine.Remade > 0 {
			emitter.run(program.Recompute, routine, microBatch, routine.ticks.Recompute)
			emitter.read(routine.input[slot])
			emitter.write(routine.remade, routine.recompute)
		}
		emitter.run(program.Backward, routine, microBatch, routine.ticks.Backward)
		unit := &emitter.units[routine.unit]
		emitter.read(unit.feed, routine.input[slot], routine.saved[slot], routine.remade, message)
		emitter.write(routine.backward)
		if emitter.began(unit.grads) {
			emitter.add(unit.grads)
		} else {
			emitter.write(unit.grads)
		}
		emitter.gradient(stage, number)
		if message != program.None {
			emitter.free(stage.grad, sequence)
		}
	}
	if stage.gradOut != nil {
		emitter.send(stage.gradOut, microBatch, stage.dout)
	}
}

// gradient is the working gradient that a backward takes and hands on: a
// stage's last unit begins it, its first ends it in what is sent back.
func (emitter *emitter) gradient(stage *stage, number int) {
	begins, ends := number == len(stage.routines)-1, number == 0
	switch {
	case begins && ends:
	case begins:
		emitter.write(emitter.device.gradient)
	case ends:
		emitter.read(emitter.device.gradient)
	default:
		emitter.add(emitter.device.gradient)
	}
	if ends {
		emitter.write(stage.dout)
	}
}
