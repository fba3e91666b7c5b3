package compile

import (
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/executor/program"
)

// sets are the numbers of the buffers that a micro-batch in flight uses. moved has them by routine
// if a pass has tensors that come from host memory or leave for it.
type sets struct {
	saved, late, pending int
	moved                map[int]int
}

// rings says which sets of saved activations each micro-batch in flight uses, by chunk. The lowest
// free one is taken.
type rings struct {
	free  []struct{ saved, late, pending []bool }
	taken [][]sets // by micro-batch
	moved turns
}

func newRings(device *device) *rings {
	out := &rings{free: make([]struct{ saved, late, pending []bool }, len(device.stages)), moved: turns{sets: device.sets}}
	for chunk, stage := range device.stages {
		free := &out.free[chunk]
		free.saved, free.late, free.pending = make([]bool, stage.depth.Saved), make([]bool, stage.depth.Late), make([]bool, stage.depth.Pending)
		for _, all := range [][]bool{free.saved, free.late, free.pending} {
			for slot := range all {
				all[slot] = true
			}
		}
		out.taken = append(out.taken, make([]sets, len(stage.forwards)))
	}
	return out
}

// take returns the lowest free set. There are as many as were ever in flight.
func take(free []bool) int {
	for slot := range free {
		if free[slot] {
			free[slot] = false
			return slot
		}
	}
	return 0
}

// pass returns the sets of a micro-batch for an action, and frees those that end with it.
func (rings *rings) pass(chunk int, action order.Action) sets {
	free, taken := &rings.free[chunk], &rings.taken[chunk][action.MicroBatch]
	switch action.Kind {
	case order.Forward:
		taken.saved, taken.late = take(free.saved), take(free.late)
	case order.Input:
		taken.pending = take(free.pending)
	case order.Weight:
		free.pending[taken.pending] = true
	case order.Backward:
	}
	if action.Kind.Sends() {
		free.saved[taken.saved] = true
	}
	if action.Kind.Ends() {
		free.late[taken.late] = true
	}
	return *taken
}

// inputOf is the buffer of a routine's kept input.
func (routine *routine) inputOf(sets sets) int32 {
	if routine.KeepsInput {
		return of(routine.input, routine.slot(sets, sets.late))
	}
	return of(routine.input, routine.slot(sets, sets.saved))
}

// savedOf and lateOf are the buffers of what a routine's forward saves.
func (routine *routine) savedOf(sets sets) int32 {
	return of(routine.saved, routine.slot(sets, sets.saved))
}

func (routine *routine) lateOf(sets sets) int32 {
	return of(routine.late, routine.slot(sets, sets.late))
}

func of(buffers []int32, slot int) int32 {
	if slot < len(buffers) {
		return buffers[slot]
	}
	return program.None
}

// training writes the passes of training.
type training struct{ *emitter }

// forward runs a micro-batch through a stage. Every unit writes its output into the input that the
// next unit keeps. Units that add to the stream in place write into the next input that is kept,
// and the stage's last unit into the message.
func (train training) forward(stage *stage, microBatch int32, sets sets) {
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
			train.write(routine.inputOf(sets))
		} else {
			train.read(routine.inputOf(sets))
		}
		train.write(routine.savedOf(sets), routine.lateOf(sets), routine.forward)
		train.result(stage, number, sets)
		train.store(routine, microBatch, sets)
		if message != program.None {
			train.free(stage.act, sequence)
		}
	}
	if stage.actOut != nil {
		train.send(stage.actOut, microBatch, stage.out)
	}
}

// result adds the output of a forward in training.
func (train training) result(stage *stage, number int, sets sets) {
	routine := &stage.routines[number]
	buffer := stage.out
	if routine.target >= 0 {
		buffer = stage.routines[routine.target].inputOf(sets)
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

// backward runs a micro-batch's gradient back through a stage, which changes it in place from the
// last unit to the first. If backwards are in two halves, it is the first.
func (train training) backward(stage *stage, microBatch int32, sets sets, whole bool) {
	for number := len(stage.routines) - 1; number >= 0; number-- {
		routine := &stage.routines[number]
		var sequence, message int32 = 0, program.None
		if number == len(stage.routines)-1 && stage.grad != nil {
			sequence, message = train.receive(stage.grad, 0, microBatch)
		}
		train.fetch(routine, microBatch, sets)
		if routine.Remade > 0 {
			train.run(program.Recompute, routine, microBatch, routine.ticks.Recompute)
			train.read(routine.inputOf(sets))
			train.write(routine.remade, routine.recompute)
		}
		op, pending := program.Backward, of(routine.pending, sets.pending)
		if whole {
			pending = routine.whole
		}
		if train.splits() {
			op = program.BackwardInput
		}
		train.run(op, routine, microBatch, routine.ticks.Backward)
		train.read(train.units[routine.unit].feed, routine.inputOf(sets), routine.savedOf(sets), routine.lateOf(sets), routine.remade, message)
		train.write(routine.backward)
		if op == program.Backward || !routine.Learns {
			train.gradients(routine)
		} else {
			train.write(pending)
		}
		train.gradient(stage, number)
		if message != program.None {
			train.free(stage.grad, sequence)
		}
		if whole {
			train.learnUnit(routine, microBatch, sets, pending)
		}
	}
	if stage.gradOut != nil {
		train.send(stage.gradOut, microBatch, stage.dout)
	}
}

// gradients adds to the gradients of a routine's weights, or begins them.
func (train training) gradients(routine *routine) {
	grads := train.units[routine.unit].grads
	if train.began(grads) {
		train.add(grads)
	} else {
		train.write(grads)
	}
}

// learn makes the gradients of a stage's weights: the second half of its backward.
func (train training) learn(stage *stage, microBatch int32, sets sets) {
	for number := len(stage.routines) - 1; number >= 0; number-- {
		routine := &stage.routines[number]
		if routine.Learns {
			train.fetch(routine, microBatch, sets)
		}
		train.learnUnit(routine, microBatch, sets, of(routine.pending, sets.pending))
	}
}

// learnUnit makes the gradients of a unit's weights, if the first half did not.
func (train training) learnUnit(routine *routine, microBatch int32, sets sets, pending int32) {
	if !routine.Learns {
		return
	}
	train.run(program.BackwardWeight, routine, microBatch, routine.ticks.Learn)
	train.read(train.units[routine.unit].feed)
	if routine.KeepsInput {
		train.read(routine.inputOf(sets))
	}
	train.read(routine.lateOf(sets), pending)
	train.write(routine.learn)
	train.gradients(routine)
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
