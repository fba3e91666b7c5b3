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

// stepEnd writes what ends a step in training on a device.
type stepEnd struct{ *emitter }

// update ends a training step. Devices exchange tied gradients. The squared norms of all gradients
// go from the last rank to the first, and their sum goes back. Then every unit's weights are
// updated from its gradients, clipped by that sum.
func (end stepEnd) update() {
	device := end.device
	arrived := end.exchange()
	total := end.clip(arrived)
	end.step(total)
	for _, each := range arrived {
		end.free(each.channel, 0)
	}
	rank := slices.Index(end.ranks, device)
	if rank > 0 {
		end.free(end.totals[rank-1], 0)
	}
	if device.result != program.None {
		end.open(program.Fence, 0)
		end.read(device.result)
	}
}

// exchange sends the gradients of tied weights that other devices have too, and
// receives theirs.
func (end stepEnd) exchange() (arrived []arrival) {
	for number := range end.ties {
		for _, use := range end.ties[number].uses {
			unit := &end.units[use.unit]
			for _, channel := range use.to {
				if unit.device == end.device.index {
					end.send(channel, program.None, unit.grads)
				}
			}
		}
	}
	for number := range end.ties {
		for _, use := range end.ties[number].uses {
			for _, channel := range use.to {
				if end.out.Channels[channel.index].To == end.device.index {
					arrived = append(arrived, end.take(channel))
				}
			}
		}
	}
	return arrived
}

// take receives the one message of a channel.
func (end stepEnd) take(channel *channel) arrival {
	instr := end.open(program.Recv, 0)
	instr.Channel = channel.index
	end.write(channel.slots[0])
	return arrival{channel, channel.slots[0]}
}

// clip computes the sum of all squared norms, which every unit's step reads. It returns the buffer
// that has the sum on the device.
func (end stepEnd) clip(arrived []arrival) int32 {
	rank := slices.Index(end.ranks, end.device)
	last := len(end.ranks) - 1
	var norms arrival
	if rank < last {
		norms = end.take(end.norms[rank])
	}
	end.open(program.Step, 0)
	for _, stage := range end.device.stages {
		for index := stage.First; index < stage.End; index++ {
			end.read(end.units[index].grads)
		}
	}
	for _, each := range arrived {
		end.read(each.slot)
	}
	if rank < last {
		end.read(norms.slot)
	}
	end.write(end.device.norms)
	if rank < last {
		end.free(norms.channel, 0)
	}
	total := end.device.total
	if rank == 0 {
		end.open(program.Step, 0)
		end.read(end.device.norms)
		end.write(total)
	} else {
		end.send(end.norms[rank-1], program.None, end.device.norms)
		total = end.take(end.totals[rank-1]).slot
	}
	if rank < last {
		end.send(end.totals[rank], program.None, total)
	}
	return total
}

// step updates the weights of every unit, one instruction a unit. The gradients
// of all uses of a tied weight are added up in the order of the units, on every
// device that has it.
func (end stepEnd) step(total int32) {
	for _, stage := range end.device.stages {
		for index := stage.First; index < stage.End; index++ {
			unit := &end.units[index]
			ties := end.updates(index)
			if unit.grads == program.None || unit.weights == program.None && len(ties) == 0 {
				continue // nothing is trained, or another use on the device updates what it reads
			}
			end.open(program.Step, end.times.Update(end.places, index))
			end.read(unit.grads)
			for _, number := range ties {
				end.otherUses(number, index)
			}
			end.read(total)
			end.add(unit.weights, unit.master, unit.state)
			for _, number := range ties {
				if copied := end.device.copies[number]; copied != nil {
					end.add(copied.weights, copied.master, copied.state)
				}
			}
		}
	}
}

// updates are the tied weights that the unit's step updates on the device: those
// that it owns, and those that it uses first there.
func (end stepEnd) updates(index int) (ties []int) {
	for number := range end.ties {
		if copied := end.device.copies[number]; end.ties[number].Owner == index || copied != nil && copied.use == index {
			ties = append(ties, number)
		}
	}
	return ties
}

// otherUses reads the gradients of a tied weight's other uses, on this device or in a message.
func (end stepEnd) otherUses(number, index int) {
	for _, use := range end.ties[number].uses {
		if unit := &end.units[use.unit]; unit.device == end.device.index && use.unit != index {
			end.read(unit.grads)
		}
		for _, channel := range use.to {
			if end.out.Channels[channel.index].To == end.device.index {
				end.read(channel.slots[0])
			}
		}
	}
}
