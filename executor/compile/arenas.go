package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// arena is a device's memory while it is laid out: buffers follow each other
// from the bottom. Every size is a multiple of [costmodel.RegionAlign].
type arena struct {
	out    *program.Program
	device int32
	top    int64
}

// put places a buffer on top; of nothing there is none.
func (arena *arena) put(bytes int64, class program.Class, format string, words ...any) int32 {
	at := arena.top
	arena.top += bytes
	return arena.at(at, bytes, class, format, words...)
}

// at places a buffer where others may lie at other times.
func (arena *arena) at(offset, bytes int64, class program.Class, format string, words ...any) int32 {
	if bytes <= 0 {
		return program.None
	}
	name := format
	if len(words) > 0 {
		name = fmt.Sprintf(format, words...)
	}
	arena.out.Buffers = append(arena.out.Buffers, program.Buffer{Device: arena.device, Name: name, Offset: offset, Bytes: bytes, Class: class})
	return int32(len(arena.out.Buffers) - 1)
}

// arenas lays out every device: from the bottom the library's workspace, what
// is held throughout, the slots of channels, the stream, and what is saved
// with the scratch of passes.
func (compiler *compiler) arenas() {
	for index := range compiler.devices {
		device := &compiler.devices[index]
		on := &compiler.topology.Devices[index]
		arena := &arena{out: compiler.out, device: device.index}
		if len(device.stages) > 0 {
			if compiler.mode() != costmodel.Load {
				arena.put(compiler.workspace(device), program.Workspace, "workspace")
			}
			compiler.state(arena, device)
			if compiler.mode() != costmodel.Load {
				compiler.slots(arena, device)
				compiler.stream(arena, device)
				compiler.kept(arena, device)
			}
		}
		compiler.out.Devices = append(compiler.out.Devices, program.Device{ID: device.index, Arena: arena.top, Budget: on.Budget()})
	}
}

// workspace is what the library takes on a device that runs matrix products.
func (compiler *compiler) workspace(device *device) int64 {
	for _, stage := range device.stages {
		for index := stage.First; index < stage.End; index++ {
			if compiler.table.Units[index].Products {
				return aligned(compiler.table.Workspaces * compiler.topology.Devices[device.index].WorkspaceBytes)
			}
		}
	}
	return 0
}

// state places what every unit holds throughout. Of a weight that another
// device owns there is one copy, with the owner's name.
func (compiler *compiler) state(arena *arena, device *device) {
	trains, runs := compiler.trains(), compiler.mode() != costmodel.Load
	device.copies = make(map[int]*weightCopy)
	for _, stage := range device.stages {
		for index := stage.First; index < stage.End; index++ {
			unit := &compiler.units[index]
			unit.weights = arena.put(unit.Weights, program.Weight, "%s.weights", unit.name)
			compiler.copied(arena, device, index)
			if trains {
				unit.master = arena.put(unit.Master, program.Master, "%s.master", unit.name)
				unit.state = arena.put(unit.State, program.State, "%s.state", unit.name)
			}
			if trains && !compiler.stacked() {
				unit.grads = arena.put(unit.Grads, program.Gradient, "%s.grads", unit.name)
			}
			if runs {
				unit.cache = arena.put(unit.Cache, program.Cache, "%s.cache", unit.name)
				unit.feed = arena.put(unit.Feed, program.Feed, "%s.feed", unit.name)
			}
		}
	}
}

// copied places the weights that the unit reads and another device owns.
func (compiler *compiler) copied(arena *arena, device *device, index int) {
	for _, number := range compiler.units[index].ties {
		tie := &compiler.ties[number]
		if compiler.units[tie.Owner].device == device.index || device.copies[number] != nil {
			continue
		}
		held := &weightCopy{use: index, master: program.None, state: program.None}
		held.weights = arena.put(tie.Weights, program.Weight, "%s.weights", tie.name)
		if compiler.trains() {
			held.master = arena.put(tie.Master, program.Master, "%s.master", tie.name)
			held.state = arena.put(tie.State, program.State, "%s.state", tie.name)
		}
		device.copies[number] = held
	}
}

// slots places the slots of the channels that end on the device.
func (compiler *compiler) slots(arena *arena, device *device) {
	for _, channel := range compiler.channels {
		made := &compiler.out.Channels[channel.index]
		if made.To != device.index {
			continue
		}
		for slot := range channel.slots {
			channel.slots[slot] = arena.put(made.Bytes, program.Slot, "%s.slot[%d]", made.Name, slot)
		}
	}
}

// stream places what a device works on between its units and sends: one
// buffer that all units of the device change in place, in training for the
// gradient (forward writes into the input that the next unit keeps), and one a
// stage for what leaves it: tokens, which are shorter than what the prompt was,
// at the same place.
func (compiler *compiler) stream(arena *arena, device *device) {
	var most int64
	for _, stage := range device.stages {
		if stage.actOut != nil {
			at := arena.top
			stage.out = arena.put(stage.makes, program.Stream, "out[%d]", stage.chunk)
			if stage.tokOut != nil {
				stage.token = arena.at(at, stage.makesToken, program.Stream, "token[%d]", stage.chunk)
				compiler.above[stage.token] = stage.out
			}
		}
		if stage.gradOut != nil {
			stage.dout = arena.put(stage.takes, program.Stream, "dout[%d]", stage.chunk)
		}
		for number := range len(stage.routines) - 1 {
			most = max(most, stage.routines[number].Output)
		}
	}
	device.stream, device.gradient = program.None, program.None
	if compiler.trains() {
		device.gradient = arena.put(most, program.Stream, "gradient")
		device.norms = arena.put(compiler.normBytes(), program.Result, "norms")
		device.total = program.None
		if device == compiler.ranks[0] {
			device.total = arena.put(costmodel.RegionAlign, program.Result, "total")
		}
		if device == compiler.ranks[len(compiler.ranks)-1] {
			// No norms arrive here; the room is left, so that what a device takes
			// is the same wherever it stands.
			arena.top += compiler.normBytes()
		}
	} else {
		device.stream = arena.put(most, program.Stream, "stream")
	}
	compiler.results(arena, device)
}

// results places what the caller gets, and the ids that are generated: where
// the last unit and the first share a device those of every micro-batch stay
// until its next token.
func (compiler *compiler) results(arena *arena, device *device) {
	first, last := compiler.ends()
	device.result = program.None
	if device != last.device {
		return
	}
	name := "logits"
	if compiler.trains() {
		name = "losses"
	}
	device.result = arena.put(last.routines[len(last.routines)-1].Result, program.Result, "%s", name)
	switch {
	case compiler.tokens == 0:
	case first.device != last.device:
		device.ids = []int32{arena.put(compiler.idBytes(), program.Stream, "ids")}
	default:
		for microBatch := range compiler.microBatches {
			device.ids = append(device.ids, arena.put(compiler.idBytes(), program.Stream, "ids[%d]", microBatch))
		}
	}
}
