package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// wiring makes the channels of a program.
type wiring struct{ *compiler }

// connect makes the channels: between stages, of generated tokens, of tied
// gradients, of norms.
func (wiring wiring) connect() error {
	for number := 1; number < len(wiring.stages); number++ {
		wiring.between(number)
	}
	if first, last := wiring.ends(); wiring.tokens > 0 && first.device != last.device {
		wiring.ids = wiring.channel("ids", last.device, first.device, wiring.microBatches, wiring.idBytes(), 0, 0)
		wiring.ids.inOrder(last.forwards)
	}
	if !wiring.trains() {
		return nil
	}
	if err := wiring.exchanged(); err != nil {
		return err
	}
	for rank := 1; rank < len(wiring.ranks); rank++ {
		one, next := wiring.ranks[rank-1], wiring.ranks[rank]
		wiring.norms = append(wiring.norms, wiring.channel(fmt.Sprintf("norm[%d]", rank-1), next, one, 1, wiring.normBytes(), 0, 0))
		wiring.totals = append(wiring.totals, wiring.channel(fmt.Sprintf("total[%d]", rank-1), one, next, 1, costmodel.RegionAlign, 0, 0))
	}
	return nil
}

// between makes the channels from a stage to the next, and back.
func (wiring wiring) between(number int) {
	from, to := &wiring.stages[number-1], &wiring.stages[number]
	if to.takes == 0 {
		return
	}
	source, target := int(from.device.index), int(to.device.index)
	ticks, latency := wiring.times.Message(source, target, to.takes)
	need := wiring.outstanding(from.forwards, to.forwards)
	to.act = wiring.channel(fmt.Sprintf("act[%d]", number), from.device, to.device, need, to.takes, ticks, latency)
	to.act.inOrder(from.forwards)
	from.actOut = to.act
	if wiring.trains() {
		ticks, latency = wiring.times.Message(target, source, to.takes)
		from.grad = wiring.channel(fmt.Sprintf("grad[%d]", number-1), to.device, from.device, wiring.outstanding(to.backwards, from.backwards), to.takes, ticks, latency)
		from.grad.inOrder(to.backwards)
		to.gradOut = from.grad
	}
	if wiring.tokens > 0 {
		ticks = wiring.times.Token(source, target, from.End-1)
		to.tok = wiring.channel(fmt.Sprintf("tok[%d]", number), from.device, to.device, need, to.takesToken, ticks, 0)
		to.tok.inOrder(from.forwards)
		from.tokOut = to.tok
	}
}

func (wiring wiring) channel(name string, from, to *device, count int, bytes, ticks, latency int64) *channel {
	out := &channel{index: int32(len(wiring.out.Channels)), slots: make([]int32, count)}
	wiring.out.Channels = append(wiring.out.Channels, program.Channel{
		Name: name, From: from.index, To: to.index, Slots: int32(count), Bytes: bytes, Ticks: ticks, Latency: latency,
	})
	wiring.channels = append(wiring.channels, out)
	return out
}

// inOrder notes the order in which micro-batches are sent.
func (channel *channel) inOrder(sent []int32) {
	channel.order, channel.position = sent, make([]int32, len(sent))
	for at, microBatch := range sent {
		channel.position[microBatch] = int32(at)
	}
}

// outstanding returns how many slots a channel needs if its messages are sent in one order and used
// in another. Slots are reused in the order of sending: a message keeps its slot until all earlier
// messages have been used too.
func (compiler *compiler) outstanding(sent, used []int32) int {
	position := make([]int, len(sent))
	for at, microBatch := range sent {
		position[microBatch] = at
	}
	free := make([]bool, len(sent))
	need, lowest := min(compiler.perChannel, len(sent)), 0
	for _, microBatch := range used {
		need = max(need, position[microBatch]-lowest+1)
		free[position[microBatch]] = true
		for lowest < len(free) && free[lowest] {
			lowest++
		}
	}
	return need
}

// ends returns the stages with the first and the last unit that run kernels.
func (compiler *compiler) ends() (first, last *stage) {
	for number := range compiler.stages {
		stage := &compiler.stages[number]
		if stage.first {
			first = stage
		}
		if stage.last {
			last = stage
		}
	}
	return first, last
}

// idBytes is the size of a micro-batch's generated ids: four bytes a sequence.
func (compiler *compiler) idBytes() int64 {
	return aligned(4 * compiler.table.Workload.Batch / int64(compiler.microBatches))
}

// normBytes is the size of the squared norms: four bytes a tensor with a gradient.
func (compiler *compiler) normBytes() int64 {
	var tensors int64
	for index := range compiler.units {
		tensors += compiler.units[index].Tensors
	}
	return aligned(4 * tensors)
}

func aligned(bytes int64) int64 {
	const mask = costmodel.RegionAlign - 1
	return (bytes + mask) &^ mask
}
