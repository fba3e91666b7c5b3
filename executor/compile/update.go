package compile

import (
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// arrival is a message that ends a step: a tied gradient, norms, their sum.
type arrival struct {
	channel *channel
	slot    int32
}

// update ends a step in training: tied gradients are exchanged, the squared
// norms of all gradients go from the last rank to the first, their sum goes
// back, and every unit's weights are updated from its gradients, clipped by
// that sum.
func (emitter *emitter) update(device *device) {
	arrived := emitter.exchange(device)
	total := emitter.clip(device, arrived)
	emitter.step(device, total)
	for _, each := range arrived {
		emitter.free(each.channel, 0)
	}
	rank := slices.Index(emitter.ranks, device)
	if rank > 0 {
		emitter.free(emitter.totals[rank-1], 0)
	}
	if device.result != program.None {
		emitter.open(program.Fence, 0)
		emitter.read(device.result)
	}
}

// exchange sends the gradients of tied weights that other devices have too, and
// receives theirs.
func (emitter *emitter) exchange(device *device) (arrived []arrival) {
	for number := range emitter.ties {
		for _, use := range emitter.ties[number].uses {
			unit := &emitter.units[use.unit]
			for _, channel := range use.to {
				if unit.device == device.index {
					emitter.send(channel, program.None, unit.grads)
				}
			}
		}
	}
	for number := range emitter.ties {
		for _, use := range emitter.ties[number].uses {
			for _, channel := range use.to {
				if emitter.out.Channels[channel.index].To == device.index {
					arrived = append(arrived, emitter.take(channel))
				}
			}
		}
	}
	return arrived
}

// take receives the one message of a channel.
func (emitter *emitter) take(channel *channel) arrival {
	instr := emitter.open(program.Recv, 0)
	instr.Channel = channel.index
	emitter.write(channel.slots[0])
	return arrival{channel, channel.slots[0]}
}

// clip works out the sum of all squared norms, which every unit's step reads.
// It returns the buffer that has it on the device.
func (emitter *emitter) clip(device *device, arrived []arrival) int32 {
	rank := slices.Index(emitter.ranks, device)
	last := len(emitter.ranks) - 1
	var norms arrival
	if rank < last {
		norms = emitter.take(emitter.norms[rank])
	}
	emitter.open(program.Step, 0)
	for _, stage := range device.stages {
		for index := stage.First; index < stage.End; index++ {
			emitter.read(emitter.units[index].grads)
		}
	}
	for _, each := range arrived {
		emitter.read(each.slot)
	}
	if rank < last {
		emitter.read(norms.slot)
	}
	emitter.write(device.norms)
	if rank < last {
		emitter.free(norms.channel, 0)
	}
	total := device.total
	if rank == 0 {
		emitter.open(program.Step, 0)
		emitter.read(device.norms)
		emitter.write(total)
	} else {
		emitter.send(emitter.norms[rank-1], program.None, device.norms)
		total = emitter.take(emitter.totals[rank-1]).slot
	}
	if rank < last {
		emitter.send(emitter.totals[rank], program.None, total)
	}
	return total
}

// step updates the weights of every unit, one instruction a unit. The gradients
// of all uses of a tied weight are added up in the order of the units, on every
// device that has it.
func (emitter *emitter) step(device *device, total int32) {
	for _, stage := range device.stages {
		for index := stage.First; index < stage.End; index++ {
			unit := &emitter.units[index]
			ties := emitter.updates(device, index)
			if unit.grads == program.None || unit.weights == program.None && len(ties) == 0 {
				continue // nothing is trained, or another use on the device updates what it reads
			}
			emitter.open(program.Step, emitter.times.Update(emitter.places, index))
			emitter.read(unit.grads)
			for _, number := range ties {
				emitter.otherUses(device, number, index)
			}
			emitter.read(total)
			emitter.add(unit.weights, unit.master, unit.state)
			for _, number := range ties {
				if held := device.copies[number]; held != nil {
					emitter.add(held.weights, held.master, held.state)
				}
			}
		}
	}
}

// updates are the tied weights that the unit's step updates on the device: those
// that it owns, and those of which it is the first use there.
func (emitter *emitter) updates(device *device, index int) (ties []int) {
	for number := range emitter.ties {
		if held := device.copies[number]; emitter.ties[number].Owner == index || held != nil && held.use == index {
			ties = append(ties, number)
		}
	}
	return ties
}

// otherUses reads the gradients that the other uses of a tied weight have,
// here or in a message.
func (emitter *emitter) otherUses(device *device, number, index int) {
	for _, use := range emitter.ties[number].uses {
		if unit := &emitter.units[use.unit]; unit.device == device.index && use.unit != index {
			emitter.read(unit.grads)
		}
		for _, channel := range use.to {
			if emitter.out.Channels[channel.index].To == device.index {
				emitter.read(channel.slots[0])
			}
		}
	}
}
