package program

import (
	"errors"
	"fmt"
)

// maxFaults is the most faults that are kept of a file: each is a line for somebody to read.
const maxFaults = 1000

// builder makes a program from the names and numbers that a reader finds, and resolves them. A name
// that refers to nothing is a fault of the program, not of its form.
type builder struct {
	program Program
	section string // what is being read: "line", or an array of JSON
	at      int32  // which of them

	devices            map[int32]int32 // number → index
	names              []deviceNames
	channels, routines map[string]int32
	// By instruction, as written: its number, and its place in the file.
	numbers, places []int32
	waits           []writtenWait
	waitStreams     map[string]int32 // names of streams in waits → which
	streamNames     []string
	links           []writtenLink
	ticks           []writtenTicks
	more            int // faults past maxFaults
}

// deviceNames are the names of one device.
type deviceNames struct {
	buffers, streams map[string]int32
	declared         bool
	place            string // of its first mention
}

// writtenWait is a wait before its instruction is known.
type writtenWait struct{ device, number, stream int32 }

func newBuilder() *builder {
	return &builder{devices: map[int32]int32{}, channels: map[string]int32{}, routines: map[string]int32{}, waitStreams: map[string]int32{}}
}

// place is the reader's place in the file.
func (build *builder) place() string { return placeOf(build.section, build.at) }

func placeOf(section string, at int32) string {
	switch section {
	case "line":
		return fmt.Sprintf("line %d", at)
	case "plan":
		return section
	}
	return fmt.Sprintf("%s[%d]", section, at)
}

// fault records a fault of the instruction that is being read, or of a declaration.
func (build *builder) fault(device, instr int32, format string, args ...any) {
	build.faultAt(build.place(), device, instr, format, args...)
}

func (build *builder) faultAt(place string, device, instr int32, format string, args ...any) {
	if len(build.program.dangling) >= maxFaults {
		build.more++
		return
	}
	build.program.dangling = append(build.program.dangling, Fault{"names", device, instr, place + ": " + fmt.Sprintf(format, args...)})
}

// device finds a device by its number. A device that no line declares exists too, without memory,
// and is a fault at the end.
func (build *builder) device(id int32) (int32, error) {
	if index, ok := build.devices[id]; ok {
		return index, nil
	}
	index := int32(len(build.names))
	if index >= maxDevices {
		return 0, fmt.Errorf("device %d: more than the %d devices that a program may have", id, maxDevices)
	}
	build.devices[id] = index
	build.names = append(build.names, deviceNames{buffers: map[string]int32{}, streams: map[string]int32{}, place: build.place()})
	build.program.Devices = append(build.program.Devices, Device{ID: id})
	return index, nil
}

func (build *builder) declareDevice(id int32, arena, budget int64) error {
	index, err := build.device(id)
	if err != nil {
		return err
	}
	if build.names[index].declared {
		build.fault(index, None, "device %d is declared twice", id)
		return nil
	}
	build.names[index].declared = true
	device := &build.program.Devices[index]
	device.Arena, device.Budget = arena, budget
	return nil
}

func (build *builder) declareBuffer(id int32, buffer Buffer) error {
	device, err := build.device(id)
	if err != nil {
		return err
	}
	buffer.Device = device
	if _, ok := build.names[device].buffers[buffer.Name]; ok {
		build.fault(device, None, "buffer %q of device %d is declared twice", buffer.Name, id)
		return nil
	}
	build.names[device].buffers[buffer.Name] = int32(len(build.program.Buffers))
	build.program.Buffers = append(build.program.Buffers, buffer)
	return nil
}

func (build *builder) declareChannel(from, to int32, channel Channel) error {
	var errFrom, errTo error
	channel.From, errFrom = build.device(from)
	channel.To, errTo = build.device(to)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	if _, ok := build.channels[channel.Name]; ok {
		build.fault(None, None, "channel %q is declared twice", channel.Name)
		return nil
	}
	build.channels[channel.Name] = int32(len(build.program.Channels))
	build.program.Channels = append(build.program.Channels, channel)
	return nil
}

// declareRoutine returns the routine, to which kernels may be added. A second declaration is a
// fault: it returns a routine that nothing refers to.
func (build *builder) declareRoutine(routine Routine) *Routine {
	if _, ok := build.routines[routine.Name]; ok {
		build.fault(None, None, "routine %q is declared twice", routine.Name)
		return &routine
	}
	build.routines[routine.Name] = int32(len(build.program.Routines))
	build.program.Routines = append(build.program.Routines, routine)
	return &build.program.Routines[len(build.program.Routines)-1]
}
