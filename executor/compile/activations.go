package compile

import (
	"github.com/devmap-dev/devmap/executor/program"
)

// activations places the saved activations of micro-batches in flight, and above them the scratch
// of passes.
func (layout *layout) activations() {
	if layout.stacked() {
		layout.stack()
		return
	}
	if layout.trains() {
		for _, stage := range layout.device.stages {
			layout.ring(stage)
		}
		layout.moved()
	}
	base, most := layout.top, int64(0)
	for _, stage := range layout.device.stages {
		for number := range stage.routines {
			routine := &stage.routines[number]
			most = max(most, layout.scratch(routine, base, base, stage.depth.Whole > 0 && layout.splits()))
		}
	}
	layout.top = base + most
}

// ring places as many sets of a stage's saved activations as it has micro-batches in flight. A
// forward takes the lowest free set; the micro-batch's backward frees it. A backward in two halves
// has three kinds of sets, each with its own number.
func (layout *layout) ring(stage *stage) {
	set := func(depth int64, moved bool, place func(routine *routine, name string, slot int64)) {
		for slot := range depth {
			for number := range stage.routines {
				if routine := &stage.routines[number]; moved || routine.Moved == 0 {
					place(routine, layout.units[routine.unit].name, slot)
				}
			}
		}
	}
	add := func(buffers *[]int32, bytes int64, word, name string, slot int64) {
		*buffers = append(*buffers, layout.put(bytes, program.Saved, "%s.%s[%d]", name, word, slot))
	}
	set(stage.depth.Saved, false, func(routine *routine, name string, slot int64) {
		if !routine.KeepsInput {
			add(&routine.input, routine.Input, "input", name, slot)
		}
		add(&routine.saved, routine.Saved, "saved", name, slot)
	})
	if !layout.splits() {
		return
	}
	set(stage.depth.Late, false, func(routine *routine, name string, slot int64) {
		if routine.KeepsInput {
			add(&routine.input, routine.Input, "input", name, slot)
		}
		add(&routine.late, routine.Late, "late", name, slot)
	})
	set(stage.depth.Pending, true, func(routine *routine, name string, slot int64) {
		add(&routine.pending, routine.Pending, "pending", name, slot)
	})
}

// scratch places the temporary buffers of a routine's passes: the forward's at forward, and the
// backward's with its recomputed tensors at backward. It returns the bytes used above the lower of
// the two offsets.
func (layout *layout) scratch(routine *routine, forward, backward int64, whole bool) int64 {
	name := layout.units[routine.unit].name
	routine.forward = layout.at(forward, routine.Forward, program.Scratch, "%s.forward", name)
	if !layout.trains() {
		if layout.tokens > 0 {
			routine.decode = layout.at(forward, routine.Decode, program.Scratch, "%s.decode", name)
			return max(routine.Forward, routine.Decode)
		}
		return routine.Forward
	}
	again := backward + routine.Remade
	if routine.Remade > 0 {
		routine.remade = layout.at(backward, routine.Remade, program.Scratch, "%s.remade", name)
		routine.recompute = layout.at(again, routine.Forward-routine.Remade, program.Scratch, "%s.recompute", name)
	}
	routine.backward = layout.at(again, routine.Backward-routine.Remade, program.Scratch, "%s.backward", name)
	routine.learn = layout.at(backward, routine.Learn, program.Scratch, "%s.learn", name)
	if whole && routine.Pending > 0 {
		routine.whole = layout.at(backward+max(routine.Backward, routine.Learn), routine.Pending, program.Scratch, "%s.pending", name)
		return max(forward+routine.Forward, backward+routine.Scratch(true)) - min(forward, backward)
	}
	return max(forward+routine.Forward, backward+routine.Backward, backward+routine.Learn) - min(forward, backward)
}

// stack places the buffers of a device that runs one micro-batch. Activations grow up from the
// base. Gradients grow down from the top into memory that backward has freed.
//
// During unit l's backward, the activations of the units up to l are at the bottom. The gradients
// of the units from l on are at the top, and the scratch of l between. The region is the smallest
// that has room at every such moment.
func (layout *layout) stack() {
	base := layout.top
	var size, saved, grads int64
	routines := layout.device.routines()
	for number := len(routines) - 1; number >= 0; number-- {
		saved += routines[number].Input + routines[number].Saved
	}
	for number := len(routines) - 1; number >= 0; number-- {
		routine := routines[number]
		// The recompute runs before the unit has gradients.
		if routine.Remade > 0 {
			size = max(size, saved+routine.Forward+grads)
		}
		grads += routine.Grads
		size = max(size, saved+routine.Backward+grads)
		saved -= routine.Input + routine.Saved
	}
	size = max(size, grads) // the optimizer's step
	for _, stage := range layout.device.stages {
		size = max(size, layout.stackStage(stage, base, base+saved))
		for number := range stage.routines {
			saved += stage.routines[number].Input + stage.routines[number].Saved
		}
	}
	layout.top = base + size
	top := layout.top
	for number := len(routines) - 1; number >= 0; number-- {
		unit := &layout.units[routines[number].unit]
		top -= unit.Grads
		unit.grads = layout.at(top, unit.Grads, program.Gradient, "%s.grads", unit.name)
	}
}

// stackStage places a stage's activations from offset at on, and the scratch. It returns the most
// bytes above base that a forward takes. A forward writes its output into the input that a later
// unit keeps, so its scratch lies above that input.
func (layout *layout) stackStage(stage *stage, base, at int64) (most int64) {
	ends := make([]int64, len(stage.routines)) // of the inputs
	end := at
	for number := range stage.routines {
		routine := &stage.routines[number]
		name := layout.units[routine.unit].name
		routine.input = []int32{layout.at(end, routine.Input, program.Saved, "%s.input[0]", name)}
		ends[number] = end + routine.Input
		routine.saved = []int32{layout.at(ends[number], routine.Saved, program.Saved, "%s.saved[0]", name)}
		end = ends[number] + routine.Saved
	}
	for number := range stage.routines {
		routine := &stage.routines[number]
		own := ends[number] + routine.Saved
		forward := own
		if routine.target >= 0 {
			forward = ends[routine.target]
		}
		layout.scratch(routine, forward, own, false)
		most = max(most, forward+routine.Forward-base)
	}
	return most
}

// routines returns the device's routines in order of execution.
func (device *device) routines() (routines []*routine) {
	for _, stage := range device.stages {
		for number := range stage.routines {
			routines = append(routines, &stage.routines[number])
		}
	}
	return routines
}
