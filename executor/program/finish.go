package program

import (
	"fmt"
	"slices"
)

// finish puts the instructions of each device together, settles what waits are
// for, and returns the program with the faults that its names have.
func (build *builder) finish() *Program {
	program := &build.program
	for index := range build.names {
		if device := &build.names[index]; !device.declared {
			build.faultAt(device.place, int32(index), None, "device %d is not declared", program.Devices[index].ID)
		}
	}
	order := build.grouped()
	numbered := build.numbering(order)
	build.settleWaits(numbered)
	build.arrange(order)
	build.settleTicks(numbered)
	if build.more > 0 {
		program.dangling = append(program.dangling, Fault{"names", None, None, fmt.Sprintf("… and %d more", build.more)})
	}
	return program
}

// grouped is where each instruction goes: those of a device one after another
// as they are written, devices in their order. It sets the devices' bounds.
func (build *builder) grouped() []int32 {
	program := &build.program
	next := make([]int32, len(program.Devices))
	for i := range program.Instrs {
		next[program.Instrs[i].Device]++
	}
	first := int32(0)
	for device, count := range next {
		program.Devices[device].First, program.Devices[device].End = first, first+count
		next[device], first = first, first+count
	}
	order := make([]int32, len(program.Instrs))
	for i := range program.Instrs {
		device := program.Instrs[i].Device
		order[i] = next[device]
		next[device]++
	}
	return order
}

// numbering finds an instruction by its device and number. It has a table of
// those devices alone whose numbers are not 0, 1, 2, … in the order of lines.
type numbering struct {
	devices []Device
	tables  []map[int32]int32
}

func (numbered *numbering) find(device, number int32) (int32, bool) {
	if table := numbered.tables[device]; table != nil {
		index, ok := table[number]
		return index, ok
	}
	bounds := &numbered.devices[device]
	return bounds.First + number, number < bounds.End-bounds.First
}

// numbering holds the numbers against the order of lines.
func (build *builder) numbering(order []int32) *numbering {
	program := &build.program
	numbered := &numbering{program.Devices, make([]map[int32]int32, len(program.Devices))}
	next := make([]int32, len(program.Devices))
	for i, number := range build.numbers {
		device := program.Instrs[i].Device
		if number != next[device] {
			build.faultAt(placeOf(build.section, build.places[i]), device, int32(i), "%s: stands where %d.%d belongs: instructions count from 0, without gaps",
				build.labelOf(int32(i)), program.Devices[device].ID, next[device])
			numbered.tables[device] = map[int32]int32{}
		}
		next[device] = number + 1
	}
	for i, number := range build.numbers {
		table := numbered.tables[program.Instrs[i].Device]
		if _, twice := table[number]; table != nil && !twice {
			table[number] = order[i]
		}
	}
	return numbered
}

// settleWaits finds what is waited for. A wait for nothing is left out.
func (build *builder) settleWaits(numbered *numbering) {
	program := &build.program
	program.Waits = make([]Wait, 0, len(build.waits))
	for i := range program.Instrs {
		instr := &program.Instrs[i]
		written := build.waits[instr.FirstWait:instr.EndWait]
		instr.FirstWait = int32(len(program.Waits))
		for _, wait := range written {
			settled, why := build.settle(wait, numbered)
			if why == "" {
				program.Waits = append(program.Waits, settled)
				continue
			}
			build.faultAt(placeOf(build.section, build.places[i]), instr.Device, int32(i), "%s: waits for %s:%d.%d: %s",
				build.labelOf(int32(i)), build.streamNames[wait.stream], wait.device, wait.number, why)
		}
		instr.EndWait = int32(len(program.Waits))
	}
	build.waits = nil
}

// settle is what a wait is for, or why it is for nothing.
func (build *builder) settle(wait writtenWait, numbered *numbering) (settled Wait, why string) {
	device, ok := build.devices[wait.device]
	if !ok {
		return Wait{}, "there is no such device"
	}
	index, ok := numbered.find(device, wait.number)
	if !ok {
		return Wait{}, "there is no such instruction"
	}
	stream, ok := build.names[device].streams[build.streamNames[wait.stream]]
	if !ok {
		return Wait{}, "the device has no such stream"
	}
	return Wait{index, stream}, ""
}

// arrange moves the instructions to their places, which faults name from here
// on.
func (build *builder) arrange(order []int32) {
	program := &build.program
	if slices.IsSorted(order) {
		return
	}
	placed := make([]Instr, len(order))
	for i, to := range order {
		placed[to] = program.Instrs[i]
	}
	program.Instrs = placed
	for i := range program.dangling {
		if fault := &program.dangling[i]; fault.Instr >= 0 {
			fault.Instr = order[fault.Instr]
		}
	}
}
