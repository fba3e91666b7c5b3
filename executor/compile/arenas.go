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

// put places a buffer on top and returns its index, or program.None if it has no bytes.
func (arena *arena) put(bytes int64, class program.Class, format string, words ...any) int32 {
	at := arena.top
	arena.top += bytes
	return arena.at(at, bytes, class, format, words...)
}

// at places a buffer at an offset that other buffers may use at other times.
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

// layout places the buffers of one device in its arena.
type layout struct {
	*compiler
	*arena
	device *device
}

// arenas lays out every device. From the bottom it has the library's workspace, buffers of the
// whole step, slots of channels, the stream, and saved activations with the scratch of passes.
func (compiler *compiler) arenas() {
	for index := range compiler.devices {
		device := &compiler.devices[index]
		on := &compiler.topology.Devices[index]
		layout := &layout{compiler: compiler, arena: &arena{out: compiler.out, device: device.index}, device: device}
		if len(device.stages) > 0 {
			if compiler.mode() != costmodel.Load {
				layout.put(compiler.workspace(device), program.Workspace, "workspace")
			}
			layout.state()
			if compiler.mode() != costmodel.Load {
				layout.slots()
				layout.stream()
				layout.activations()
			}
		}
		compiler.out.Devices = append(compiler.out.Devices, program.Device{ID: device.index, Arena: layout.top, Budget: on.Budget()})
	}
}

// workspace returns the bytes of the library's workspace, 0 on a device without matrix products.
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

// state places the buffers that units keep for the whole step. The device also has one copy of each
// weight that it reads and another device owns.
func (layout *layout) state() {
	trains, runs := layout.trains(), layout.mode() != costmodel.Load
	layout.device.copies = make(map[int]*weightCopy)
	for _, stage := range layout.device.stages {
		for index := stage.First; index < stage.End; index++ {
			unit := &layout.units[index]
			unit.weights = layout.put(unit.Weights, program.Weight, "%s.weights", unit.name)
			layout.copied(index)
			if trains {
				unit.master = layout.put(unit.Master, program.Master, "%s.master", unit.name)
				unit.state = layout.put(unit.State, program.State, "%s.state", unit.name)
			}
			if trains && !layout.stacked() {
				unit.grads = layout.put(unit.Grads, program.Gradient, "%s.grads", unit.name)
			}
			if runs {
				unit.cache = layout.put(unit.Cache, program.Cache, "%s.cache", unit.name)
				unit.feed = layout.put(unit.Feed, program.Feed, "%s.feed", unit.name)
			}
		}
	}
}

// copied places the weights that the unit reads and another device owns.
func (layout *layout) copied(index int) {
	for _, number := range layout.units[index].ties {
		tie := &layout.ties[number]
		if layout.units[tie.Owner].device == layout.device.index || layout.device.copies[number] != nil {
			continue
		}
		copied := &weightCopy{use: index, master: program.None, state: program.None}
		copied.weights = layout.put(tie.Weights, program.Weight, "%s.weights", tie.name)
		if layout.trains() {
			copied.master = layout.put(tie.Master, program.Master, "%s.master", tie.name)
			copied.state = layout.put(tie.State, program.State, "%s.state", tie.name)
		}
		layout.device.copies[number] = copied
	}
}

// slots places the slots of the channels that end on the device.
func (layout *layout) slots() {
	for _, channel := range layout.channels {
		made := &layout.compiler.out.Channels[channel.index]
		if made.To != layout.device.index {
			continue
		}
		for slot := range channel.slots {
			channel.slots[slot] = layout.put(made.Bytes, program.Slot, "%s.slot[%d]", made.Name, slot)
		}
	}
}

// stream places the values that pass between units and stages. All units of a device change one
// buffer in place. It holds the gradient in training, as forward writes into the input that the
// next unit keeps. Each stage also has a buffer for what it sends. Messages of tokens are shorter
// than those of the prompt and use the same place.
func (layout *layout) stream() {
	var most int64
	for _, stage := range layout.device.stages {
		if stage.actOut != nil {
			at := layout.top
			stage.out = layout.put(stage.makes, program.Stream, "out[%d]", stage.chunk)
			if stage.tokOut != nil {
				stage.token = layout.at(at, stage.makesToken, program.Stream, "token[%d]", stage.chunk)
				layout.above[stage.token] = stage.out
			}
		}
		if stage.gradOut != nil {
			stage.dout = layout.put(stage.takes, program.Stream, "dout[%d]", stage.chunk)
		}
		for number := range len(stage.routines) - 1 {
			most = max(most, stage.routines[number].Output)
		}
	}
	layout.device.stream, layout.device.gradient = program.None, program.None
	if layout.trains() {
		layout.device.gradient = layout.put(most, program.Stream, "gradient")
		layout.device.norms = layout.put(layout.normBytes(), program.Result, "norms")
		layout.device.total = program.None
		if layout.device == layout.ranks[0] {
			layout.device.total = layout.put(costmodel.RegionAlign, program.Result, "total")
		}
		if layout.device == layout.ranks[len(layout.ranks)-1] {
			// No norms arrive here. The room stays reserved, so that the size of an arena does not
			// depend on the rank.
			layout.top += layout.normBytes()
		}
	} else {
		layout.device.stream = layout.put(most, program.Stream, "stream")
	}
	layout.results()
}

// results places what the caller gets, and the generated ids. If the first and the last unit share
// a device, the ids of every micro-batch stay until its next token.
func (layout *layout) results() {
	first, last := layout.ends()
	layout.device.result = program.None
	if layout.device != last.device {
		return
	}
	name := "logits"
	if layout.trains() {
		name = "losses"
	}
	layout.device.result = layout.put(last.routines[len(last.routines)-1].Result, program.Result, "%s", name)
	switch {
	case layout.tokens == 0:
	case first.device != last.device:
		layout.device.ids = []int32{layout.put(layout.idBytes(), program.Stream, "ids")}
	default:
		for microBatch := range layout.microBatches {
			layout.device.ids = append(layout.device.ids, layout.put(layout.idBytes(), program.Stream, "ids[%d]", microBatch))
		}
	}
}
