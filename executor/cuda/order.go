//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

// order is a program by streams, each of which takes its lines in turn.
type order struct {
	streams []stream
	of      []int32 // by instruction: its stream
	ends    []ends  // by channel
}

// stream is one of a device's.
type stream struct {
	device, number int
	lines          []int32 // of Instrs
}

// ends are the instructions of a channel, by the sequence of their message.
type ends struct{ sends, receives, frees []int32 }

func orderOf(of *program.Program) order {
	order := order{of: make([]int32, len(of.Instrs)), ends: make([]ends, len(of.Channels))}
	for device := range of.Devices {
		first := int32(len(order.streams))
		for number := range of.Devices[device].Streams {
			order.streams = append(order.streams, stream{device: device, number: number})
		}
		for index := of.Devices[device].First; index < of.Devices[device].End; index++ {
			instr := &of.Instrs[index]
			order.of[index] = first + instr.Stream
			order.streams[order.of[index]].lines = append(order.streams[order.of[index]].lines, index)
			switch instr.Op { //nolint:exhaustive // the others are no end of a channel
			case program.Send:
				put(&order.ends[instr.Channel].sends, instr.Sequence, index)
			case program.Recv:
				put(&order.ends[instr.Channel].receives, instr.Sequence, index)
			case program.Free:
				put(&order.ends[instr.Channel].frees, instr.Sequence, index)
			}
		}
	}
	return order
}

// put sets all[at], and makes it as long as that takes.
func put(all *[]int32, at, index int32) {
	for int(at) >= len(*all) {
		*all = append(*all, program.None)
	}
	(*all)[at] = index
}

// marks makes the events that instructions are known by.
func (machine *machine) marks() error {
	machine.events = make([]marks, len(machine.program.Instrs))
	waited := make([]bool, len(machine.program.Instrs))
	for i := range machine.program.Instrs {
		instr := &machine.program.Instrs[i]
		for _, wait := range machine.program.Waits[instr.FirstWait:instr.EndWait] {
			waited[wait.Instr] = waited[wait.Instr] || machine.order.of[wait.Instr] != machine.order.of[i]
		}
	}
	for i, device := range machine.devices {
		err := device.do(func() error {
			last := make(map[int32]int32) // by stream: its line before
			for index := machine.program.Devices[i].First; index < machine.program.Devices[i].End; index++ {
				before, known := last[machine.order.of[index]]
				last[machine.order.of[index]] = index
				if err := machine.mark(index, waited[index], known && machine.follows(index, before)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// follows reports an instruction that begins when the one before it in its stream
// ends: both compute, and it waits for nothing else. It needs no event of its
// beginning: an event takes a GPU a microsecond or two between kernels of three.
func (machine *machine) follows(index, before int32) bool {
	instr := &machine.program.Instrs[index]
	for _, wait := range machine.program.Waits[instr.FirstWait:instr.EndWait] {
		if machine.order.of[wait.Instr] != machine.order.of[index] {
			return false
		}
	}
	return machine.computes(before)
}

func (machine *machine) mark(index int32, waited, follows bool) (err error) {
	instr, made := &machine.program.Instrs[index], &machine.events[index]
	computes := machine.computes(index)
	meets := instr.Channel >= 0 && machine.program.Channels[instr.Channel].Slots == 0
	if computes && !follows {
		if made.began, err = driver.NewEvent(true); err != nil {
			return err
		}
	}
	if instr.Op == program.Recv && meets {
		if made.came, err = driver.NewEvent(false); err != nil {
			return err
		}
	}
	if computes || waited || instr.Op == program.Send || instr.Op == program.Fence || instr.Op == program.Free && !meets {
		made.ended, err = driver.NewEvent(computes)
	}
	return err
}

func (machine *machine) unmark(device int) error {
	var all []error
	plan := machine.devices[device].plan
	for index := plan.First; index < plan.End && int(index) < len(machine.events); index++ {
		made := &machine.events[index]
		for _, event := range []*driver.Event{made.began, made.came, made.ended} {
			if event != nil {
				all = append(all, event.Destroy())
			}
		}
	}
	return errors.Join(all...)
}
