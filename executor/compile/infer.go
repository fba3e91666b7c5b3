package compile

import "github.com/devmap-dev/devmap/executor/program"

// inference writes the passes of inference.
type inference struct{ *emitter }

// runStage runs a micro-batch through a stage: the prompt in round 0, one generated token in each
// later round. The units of a stage change one buffer in place. Its first unit takes the message,
// its last makes the next one.
func (infer inference) runStage(stage *stage, microBatch int32, round int) {
	for number := range stage.routines {
		routine := &stage.routines[number]
		begins, ends := number == 0, number == len(stage.routines)-1
		from := stage.act
		if round > 0 {
			from = stage.tok
			if stage.first && begins {
				from = infer.ids
			}
		}
		var sequence, message int32 = 0, program.None
		if begins && from != nil {
			sequence, message = infer.receive(from, turn(round), microBatch)
		}
		infer.pass(routine, microBatch, round)
		if begins {
			infer.read(message)
			infer.opens(stage, microBatch, round)
		}
		infer.add(infer.units[routine.unit].cache)
		switch stream := infer.device.stream; {
		case begins && !ends:
			infer.write(stream)
		case begins:
		case ends:
			infer.read(stream)
		default:
			infer.add(stream)
		}
		if ends {
			infer.closes(stage, microBatch, round)
		}
		if message != program.None {
			infer.free(from, sequence)
		}
	}
	infer.deliver(stage, microBatch, round)
}

// turn returns a channel's round for a round of the program. Channels of tokens begin in round 1.
func turn(round int) int {
	if round == 0 {
		return 0
	}
	return round - 1
}

func (infer inference) pass(routine *routine, microBatch int32, round int) {
	if round == 0 {
		infer.run(program.Forward, routine, microBatch, routine.ticks.Forward)
		infer.read(infer.units[routine.unit].feed)
		infer.write(routine.forward)
		return
	}
	infer.run(program.Decode, routine, microBatch, routine.ticks.Token)
	infer.write(routine.decode)
}

// opens adds the other inputs of the model's first unit. These are ids that were generated on its
// own device, and under a device map the end of the round before.
func (infer inference) opens(stage *stage, microBatch int32, round int) {
	if !stage.first {
		return
	}
	_, last := infer.ends()
	if round > 0 && infer.ids == nil {
		infer.read(last.device.ids[microBatch])
	}
	if number := round*infer.microBatches + int(microBatch); infer.sequential() && number > 0 {
		infer.awaitRound(number-1, last.device)
	}
}

// closes adds the outputs of a stage's last unit. It sends to the next stage, or makes the caller's
// result with the ids of the next token.
func (infer inference) closes(stage *stage, microBatch int32, round int) {
	if !stage.last {
		infer.write(sent(stage, round))
		return
	}
	infer.write(infer.device.result)
	if round < infer.tokens {
		infer.write(infer.idsOf(microBatch))
	}
}

// sent returns the buffer that a stage sends.
func sent(stage *stage, round int) int32 {
	if round > 0 {
		return stage.token
	}
	return stage.out
}

// idsOf returns the buffer into which the last unit writes a micro-batch's next ids.
func (infer inference) idsOf(microBatch int32) int32 {
	if infer.ids != nil {
		return infer.device.ids[0]
	}
	return infer.device.ids[microBatch]
}

// deliver sends the stage's output, or returns the result to the caller.
func (infer inference) deliver(stage *stage, microBatch int32, round int) {
	to := stage.actOut
	if round > 0 {
		to = stage.tokOut
	}
	if to != nil {
		infer.send(to, microBatch, sent(stage, round))
	}
	if !stage.last {
		return
	}
	if infer.ids != nil && round < infer.tokens {
		infer.send(infer.ids, microBatch, infer.device.ids[0])
	}
	instr := infer.open(program.Fence, 0)
	instr.MicroBatch = microBatch
	infer.read(infer.device.result)
	infer.ended[round*infer.microBatches+int(microBatch)] = infer.last()
}

// awaitRound makes the last instruction wait for the end of a round under a device map, in which
// one device works at a time. The last unit's own device needs no wait: its stream runs in order.
func (infer inference) awaitRound(round int, on *device) {
	if on == infer.device {
		return
	}
	infer.later = append(infer.later, laterWait{len(infer.out.Waits), round})
	infer.wait(program.Wait{})
}
