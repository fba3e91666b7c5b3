package compile

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// lower writes every device's instructions: what is loaded, the actions of its
// order, the tokens that are generated, the optimizer's step, what is unloaded.
func (compiler *compiler) lower() {
	emitter := &emitter{compiler: compiler, ended: make(map[int]int32)}
	for index := range compiler.devices {
		device := &compiler.devices[index]
		made := &compiler.out.Devices[index]
		made.First = int32(len(compiler.out.Instrs))
		if len(device.stages) > 0 {
			emitter.begin(device)
			emitter.deviceBody(device)
		}
		if made.End = int32(len(compiler.out.Instrs)); made.First == made.End {
			made.Streams = nil
		}
	}
	emitter.settle()
}

func (emitter *emitter) deviceBody(device *device) {
	loaded := emitter.load(device)
	switch emitter.mode() {
	case costmodel.Train:
		slots := newRings(device)
		for _, action := range device.actions {
			stage, microBatch := device.stages[action.Chunk], int32(action.MicroBatch)
			if action.Backward {
				emitter.backward(stage, microBatch, slots.give(stage, microBatch))
			} else {
				emitter.forward(stage, microBatch, slots.take(stage, microBatch))
			}
		}
		emitter.update(device)
	case costmodel.Infer:
		for round := range emitter.tokens + 1 {
			for _, action := range device.actions {
				emitter.infer(device.stages[action.Chunk], int32(action.MicroBatch), round)
			}
		}
	case costmodel.Load:
	}
	emitter.unload(loaded)
}

// load reads what is stored, and clears what begins empty. It returns the
// buffers.
func (emitter *emitter) load(device *device) (loaded []int32) {
	take := func(op program.Op, buffers ...int32) {
		for _, buffer := range buffers {
			if buffer != program.None {
				emitter.open(op, 0)
				emitter.write(buffer)
				loaded = append(loaded, buffer)
			}
		}
	}
	for _, stage := range device.stages {
		for index := stage.First; index < stage.End; index++ {
			unit := &emitter.units[index]
			take(program.Load, unit.weights, unit.master)
			take(program.Zero, unit.state)
			for _, number := range unit.ties {
				if held := device.copies[number]; held != nil && held.use == index {
					take(program.Load, held.weights, held.master)
					take(program.Zero, held.state)
				}
			}
			take(program.Zero, unit.cache)
			take(program.Load, unit.feed)
		}
	}
	return loaded
}

func (emitter *emitter) unload(loaded []int32) {
	for index := len(loaded) - 1; index >= 0; index-- {
		emitter.open(program.Unload, 0)
		emitter.read(loaded[index])
	}
}

// receive takes messages up to the micro-batch's, in the order in which they are
// sent, and returns its slot.
func (emitter *emitter) receive(channel *channel, round int, microBatch int32) (sequence, slot int32) {
	length := int32(len(channel.order))
	sequence = int32(round)*length + channel.position[microBatch]
	count := int32(len(channel.slots))
	for ; channel.received <= sequence; channel.received++ {
		instr := emitter.open(program.Recv, 0)
		instr.Channel, instr.Sequence, instr.MicroBatch = channel.index, channel.received, channel.order[channel.received%length]
		emitter.write(channel.slots[channel.received%count])
	}
	return sequence, channel.slots[sequence%count]
}

// free gives a slot back to the sender.
func (emitter *emitter) free(channel *channel, sequence int32) {
	instr := emitter.open(program.Free, 0)
	instr.Channel, instr.Sequence = channel.index, sequence
	emitter.release(channel.slots[int(sequence)%len(channel.slots)])
}

// send hands a buffer on, on the stream towards the channel's device.
func (emitter *emitter) send(channel *channel, microBatch, buffer int32) {
	made := &emitter.out.Channels[channel.index]
	stream := emitter.towards(made.To)
	instr := emitter.open(program.Send, made.Ticks)
	instr.Stream, instr.Channel, instr.Sequence, instr.MicroBatch = stream, channel.index, channel.sent, microBatch
	channel.sent++
	emitter.read(buffer)
}

// weights reads what a routine's unit owns, and what of others it reads. Units
// that pass have no kernel that would read theirs.
func (emitter *emitter) weights(routine *routine) {
	unit := &emitter.units[routine.unit]
	if unit.Passes {
		return
	}
	emitter.read(unit.weights)
	for _, number := range unit.ties {
		if held := emitter.device.copies[number]; held != nil {
			emitter.read(held.weights)
		} else {
			emitter.read(emitter.units[emitter.compiler.ties[number].Owner].weights)
		}
	}
}
