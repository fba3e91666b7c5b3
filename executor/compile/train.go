package compile

import "github.com/devmap-dev/devmap/executor/program"

// rings says which set of saved activations each micro-batch in flight uses.
type rings struct {
	free  [][]bool // by chunk
	taken [][]int  // by chunk and micro-batch
}

func newRings(device *device) *rings {
	out := &rings{}
	for _, stage := range device.stages {
		out.free = append(out.free, make([]bool, stage.depth))
		for slot := range stage.depth {
			out.free[stage.chunk][slot] = true
		}
		out.taken = append(out.taken, make([]int, len(stage.forwards)))
	}
	return out
}

// take gives a micro-batch the lowest free set.
func (rings *rings) take(stage *stage, microBatch int32) int {
	for slot, free := range rings.free[stage.chunk] {
		if free {
			rings.free[stage.chunk][slot], rings.taken[stage.chunk][microBatch] = false, slot
			return slot
		}
	}
	return 0 // there are as many sets as were ever in flight
}

func (rings *rings) give(stage *stage, microBatch int32) int {
	slot := rings.taken[stage.chunk][microBatch]
	rings.free[stage.chunk][slot] = true
	return slot
}

// training writes the passes of training.
type training struct{ *emitter }

// forward runs a micro-batch through a stage. Every unit writes its output into the input that the
// next unit keeps. Units that add to the stream in place write into the next input that is kept,
// and the stage's last unit into the message.
func (train training) forward(stage *stage, microBatch int32, slot int) {
	for number := range stage.routines {
		routine := &stage.routines[number]
		var sequence, message int32 = 0, program.None
		if number == 0 && stage.act != nil {
			sequence, message = train.receive(stage.act, 0, microBatch)
		}
		train.run(program.Forward, routine, microBatch, routine.ticks.Forward)
		train.read(train.units[routine.unit].feed)
		if number == 0 {
			train.read(message)
			train.write(routine.input[slot])
		} else {
			train.read(routine.input[slot])
		}
		train.write(routine.saved[slot], routine.forward)
		train.result(stage, number, slot)
		if message != program.None {
			train.free(stage.act, sequence)
		}
	}
	if stage.actOut != nil {
		train.send(stage.actOut, microBatch, stage.out)
	}
}

// result adds the output of a forward in training.
func (train training) result(stage *stage, number, slot int) {
	routine := &stage.routines[number]
	buffer := stage.out
	if routine.target >= 0 {
		buffer = stage.routines[routine.target].input[slot]
	}
	if stage.last && number == len(stage.routines)-1 {
		// The losses of all micro-batches add up.
		if train.began(train.device.result) {
			train.add(train.device.result)
		} else {
			train.write(train.device.result)
		}
		return
	}
	if number == 0 || routine.Input > 0 {
		train.write(buffer)
	} else {
		train.add(buffer)
	}
}

// began reports whether a buffer has been written.
func (train training) began(buffer int32) bool {
	return buffer >= 0 && int(buffer) < len(train.written) && train.written[buffer] != program.None
}

// backward runs a micro-batch's gradient back through a stage, which changes
// it in place from the last unit to the first.
func (train training) backward(stage *stage, microBatch int32, slot int) {
	for number := len(stage.routines) - 1; number >= 0; number-- {
		routine := &stage.routines[number]
		var sequence, message int32 = 0, program.None
		if number == len(stage.routines)-1 && stage.grad != nil {
			sequence, message = train.receive(stage.grad, 0, microBatch)
		}
		if routine.Remade > 0 {
			train.run(program.Recompute, routine, microBatch, routine.ticks.Recompute)
			train.read(routine.input[slot])
			train.write(routine.remade, routine.recompute)
		}
		train.run(program.Backward, routine, microBatch, routine.ticks.Backward)
		unit := &train.units[routine.unit]
		train.read(unit.feed, routine.input[slot], routine.saved[slot], routine.remade, message)
		train.write(routine.backward)
		if train.began(unit.grads) {
			train.add(unit.grads)
		} else {
			train.write(unit.grads)
		}
		train.gradient(stage, number)
		if message != program.None {
			train.free(stage.grad, sequence)
		}
	}
	if stage.gradOut != nil {
		train.send(stage.gradOut, microBatch, stage.dout)
	}
}

// gradient is the working gradient, which a backward takes and passes. A stage's last unit begins
// it, and its first unit ends it in the message that goes back.
func (train training) gradient(stage *stage, number int) {
	begins, ends := number == len(stage.routines)-1, number == 0
	switch {
	case begins && ends:
	case begins:
		train.write(train.device.gradient)
	case ends:
		train.read(train.device.gradient)
	default:
		train.add(train.device.gradient)
	}
	if ends {
		train.write(stage.dout)
	}
}
