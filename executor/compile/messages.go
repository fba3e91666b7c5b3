package compile

import "github.com/devmap-dev/devmap/executor/program"

// receive takes messages up to the micro-batch's, in the order of sending, and returns its sequence
// and slot.
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

// free returns a slot to the sender.
func (emitter *emitter) free(channel *channel, sequence int32) {
	instr := emitter.open(program.Free, 0)
	instr.Channel, instr.Sequence = channel.index, sequence
	emitter.release(channel.slots[int(sequence)%len(channel.slots)])
}

// send sends a buffer, on the stream to the channel's device.
func (emitter *emitter) send(channel *channel, microBatch, buffer int32) {
	made := &emitter.out.Channels[channel.index]
	stream := emitter.towards(made.To)
	instr := emitter.open(program.Send, made.Ticks)
	instr.Stream, instr.Channel, instr.Sequence, instr.MicroBatch = stream, channel.index, channel.sent, microBatch
	channel.sent++
	emitter.read(buffer)
}
