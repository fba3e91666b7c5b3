package compile

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/executor/program"
)

// lower writes every device's instructions: loads, the actions of its order, generated tokens, the
// optimizer's step, unloads.
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
		train, slots := training{emitter}, newRings(device)
		for _, action := range device.actions {
			stage, microBatch := device.stages[action.Chunk], int32(action.MicroBatch)
			sets := slots.pass(int(action.Chunk), action)
			sets.moved = slots.moved.pass(stage, action)
			switch action.Kind {
			case order.Forward:
				train.forward(stage, microBatch, sets)
			case order.Backward, order.Input:
				train.backward(stage, microBatch, sets, action.Kind == order.Backward)
			case order.Weight:
				train.learn(stage, microBatch, sets)
			}
		}
		stepEnd{emitter}.update()
	case costmodel.Infer:
		for round := range emitter.tokens + 1 {
			for _, action := range device.actions {
				inference{emitter}.runStage(device.stages[action.Chunk], int32(action.MicroBatch), round)
			}
		}
	case costmodel.Load, costmodel.Serve:
	}
	emitter.unload(loaded)
}

// load loads the stored buffers and zeroes those that begin empty. It returns all of them.
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
				if copied := device.copies[number]; copied != nil && copied.use == index {
					take(program.Load, copied.weights, copied.master)
					take(program.Zero, copied.state)
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
