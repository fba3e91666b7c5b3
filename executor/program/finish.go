package program

import (
	"fmt"
	"slices"
)

// linker resolves the references of a program that has been read: waits and durations name
// instructions by device and number. It makes tables only for devices whose numbers are not 0, 1,
// 2, … in the order of lines.
type linker struct {
	*builder
	order  []int32 // the index that each instruction moves to
	tables []map[int32]int32
}

// finish groups the instructions by device, resolves waits and durations, and returns the program
// with the faults of its names.
func (build *builder) finish() *Program {
	program := &build.program
	for index := range build.names {
		if device := &build.names[index]; !device.declared {
			build.faultAt(device.place, int32(index), None, "device %d is not declared", program.Devices[index].ID)
		}
	}
	link := &linker{builder: build, order: build.grouped(), tables: make([]map[int32]int32, len(program.Devices))}
	link.number()
	link.settleWaits()
	link.arrange()
	link.settleTicks()
	if build.more > 0 {
		program.dangling = append(program.dangling, Fault{"names", None, None, fmt.Sprintf("… and %d more", build.more)})
	}
	return program
}

// grouped returns the new index of each instruction: those of a device one after another as they
// are written, devices in their order. It sets the devices' ranges.
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

func (link *linker) find(device, number int32) (int32, bool) {
	if table := link.tables[device]; table != nil {
		index, ok := table[number]
		return index, ok
	}
	bounds := &link.program.Devices[device]
	return bounds.First + number, number < bounds.End-bounds.First
}

// number compares the numbers with the order of lines.
func (link *linker) number() {
	program := &link.program
	next := make([]int32, len(program.Devices))
	for i, number := range link.numbers {
		device := program.Instrs[i].Device
		if number != next[device] {
			link.faultAt(placeOf(link.section, link.places[i]), device, int32(i), "%s: stands where %d.%d belongs: instructions count from 0, without gaps",
				link.labelOf(int32(i)), program.Devices[device].ID, next[device])
			link.tables[device] = map[int32]int32{}
		}
		next[device] = number + 1
	}
	for i, number := range link.numbers {
		table := link.tables[program.Instrs[i].Device]
		if _, twice := table[number]; table != nil && !twice {
			table[number] = link.order[i]
		}
	}
}

// settleWaits resolves the waits. A wait for nothing is left out.
func (link *linker) settleWaits() {
	program := &link.program
	program.Waits = make([]Wait, 0, len(link.waits))
	for i := range program.Instrs {
		instr := &program.Instrs[i]
		written := link.waits[instr.FirstWait:instr.EndWait]
		instr.FirstWait = int32(len(program.Waits))
		for _, wait := range written {
			settled, why := link.settle(wait)
			if why == "" {
				program.Waits = append(program.Waits, settled)
				continue
			}
			link.faultAt(placeOf(link.section, link.places[i]), instr.Device, int32(i), "%s: waits for %s:%d.%d: %s",
				link.labelOf(int32(i)), link.streamNames[wait.stream], wait.device, wait.number, why)
		}
		instr.EndWait = int32(len(program.Waits))
	}
	link.waits = nil
}

// settle returns what a wait is for, or why it is for nothing.
func (link *linker) settle(wait writtenWait) (settled Wait, why string) {
	device, ok := link.devices[wait.device]
	if !ok {
		return Wait{}, "there is no such device"
	}
	index, ok := link.find(device, wait.number)
	if !ok {
		return Wait{}, "there is no such instruction"
	}
	stream, ok := link.names[device].streams[link.streamNames[wait.stream]]
	if !ok {
		return Wait{}, "the device has no such stream"
	}
	return Wait{index, stream}, ""
}

// arrange moves the instructions to their places. Faults name these from here on.
func (link *linker) arrange() {
	program, order := &link.program, link.order
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
