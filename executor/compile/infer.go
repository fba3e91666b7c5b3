package compile

import "github.com/devmap-dev/devmap/executor/program"

// infer runs a micro-batch through a stage: of the prompt in round 0, of a token
// that was generated in each round after. The units of a stage change one
// buffer in place; its first takes the message, its last makes the next one.
func (emitter *emitter) infer(stage *stage, microBatch int32, round int) {
	for number := range stage.routines {
		routine := &stage.routines[number]
		begins, ends := number == 0, number == len(stage.routines)-1
		from := stage.act
		if round > 0 {
			from = stage.tok
			if stage.first && begins {
				from = emitter.ids
			}
		}
		var sequence, message int32 = 0, program.None
		if begins && from != nil {
			sequence, message = emitter.receive(from, turn(round), microBatch)
		}
		emitter.pass(routine, microBatch, round)
		if begins {
			emitter.read(message)
			emitter.opens(stage, microBatch, round)
		}
		emitter.add(emitter.units[routine.unit].cache)
		switch stream := emitter.device.stream; {
		case begins && !ends:
			emitter.write(stream)
		case begins:
		case ends:
			emitter.read(stream)
		default:
			emitter.add(stream)
		}
		if ends {
			emitter.closes(stage, microBatch, round)
		}
		if message != program.None {
			emitter.free(from, sequence)
		}
	}
	emitter.handOn(stage, microBatch, round)
}

// turn is which round of a channel's messages a round of the program takes:
// those of tokens begin with the first token.
func turn(round int) int {
	if round == 0 {
		return 0
	}
	return round - 1
}

func (emitter *emitter) pass(routine *routine, microBatch int32, round int) {
	if round == 0 {
		emitter.run(program.Forward, routine, microBatch, routine.ticks.Forward)
		emitter.read(emitter.units[routine.unit].feed)
		emitter.write(routine.forward)
		return
	}
	emitter.run(program.Decode, routine, microBatch, routine.ticks.Token)
	emitter.write(routine.decode)
}

// opens is what the model's first unit takes besides: ids that were generated on
// its own device, and under a device map its turn.
func (emitter *emitter) opens(stage *stage, microBatch int32, round int) {
	if !stage.first {
		return
	}
	_, last := emitter.ends()
	if round > 0 && emitter.ids == nil {
		emitter.read(last.device.ids[microBatch])
	}
	if number := round*emitter.microBatches + int(microBatch); emitter.sequential() && number > 0 {
		emitter.awaitRound(number-1, last.device)
	}
}

// closes is what a stage's last unit makes: what is sent on, or the caller's
// result with the ids of the next token.
func (emitter *emitter) closes(stage *stage, microBatch int32, round int) {
	if !stage.last {
		emitter.write(sent(stage, round))
		return
	}
	emitter.write(emitter.device.result)
	if round < emitter.tokens {
		emitter.write(emitter.idsOf(microBatch))
	}
}

// sent is the buffer of what a stage sends on.
func sent(stage *stage, round int) int32 {
	if round > 0 {
		return stage.token
	}
	return stage.out
}

// idsOf is where the last unit writes a micro-batch's next ids.
func (emitter *emitter) idsOf(microBatch int32) int32 {
	if emitter.ids != nil {
		return emitter.device.ids[0]
	}
	return emitter.device.ids[microBatch]
}

// handOn sends what the stage made, or hands the result to the caller.
func (emitter *emitter) handOn(stage *stage, microBatch int32, round int) {
	to := stage.actOut
	if round > 0 {
		to = stage.tokOut
	}
	if to != nil {
		emitter.send(to, microBatch, sent(stage, round))
	}
	if !stage.last {
		return
	}
	if emitter.ids != nil && round < emitter.tokens {
		emitter.send(emitter.ids, microBatch, emitter.device.ids[0])
	}
	instr := emitter.open(program.Fence, 0)
	instr.MicroBatch = microBatch
	emitter.read(emitter.device.result)
	emitter.ended[round*emitter.microBatches+int(microBatch)] = emitter.last()
}
