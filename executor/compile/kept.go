package compile

import (
	"github.com/devmap-dev/devmap/executor/program"
)

// kept places what micro-batches in flight keep, and the scratch of passes on
// top of it.
func (compiler *compiler) kept(arena *arena, device *device) {
	if compiler.stacked() {
		compiler.stack(arena, device)
		return
	}
	if compiler.trains() {
		for _, stage := range device.stages {
			ring(arena, compiler, stage)
		}
	}
	base, most := arena.top, int64(0)
	for _, stage := range device.stages {
		for number := range stage.routines {
			routine := &stage.routines[number]
			most = max(most, compiler.scratch(arena, routine, base, base))
		}
	}
	arena.top = base + most
}

// ring places as many sets of a stage's saved activations as it has
// micro-batches in flight. A forward takes the lowest that is free, the
// micro-batch's backward gives it back.
func ring(arena *arena, compiler *compiler, stage *stage) {
	for number := range stage.routines {
		routine := &stage.routines[number]
		routine.input, routine.saved = make([]int32, stage.depth), make([]int32, stage.depth)
	}
	for slot := range stage.depth {
		for number := range stage.routines {
			routine := &stage.routines[number]
			name := compiler.units[routine.unit].name
			routine.input[slot] = arena.put(routine.Input, program.Saved, "%s.input[%d]", name, slot)
			routine.saved[slot] = arena.put(routine.Saved, program.Saved, "%s.saved[%d]", name, slot)
		}
	}
}

// scratch places what the passes of a routine take while they run: the
// forward's at one place, the backward's and what is made again for it at
// another. It returns the most that is taken above the lower of both.
func (compiler *compiler) scratch(arena *arena, routine *routine, forward, backward int64) int64 {
	name := compiler.units[routine.unit].name
	routine.forward = arena.at(forward, routine.Forward, program.Scratch, "%s.forward", name)
	if !compiler.trains() {
		if compiler.tokens > 0 {
			routine.decode = arena.at(forward, routine.Decode, program.Scratch, "%s.decode", name)
			return max(routine.Forward, routine.Decode)
		}
		return routine.Forward
	}
	again := backward + routine.Remade
	if routine.Remade > 0 {
		routine.remade = arena.at(backward, routine.Remade, program.Scratch, "%s.remade", name)
		routine.recompute = arena.at(again, routine.Forward-routine.Remade, program.Scratch, "%s.recompute", name)
	}
	routine.backward = arena.at(again, routine.Backward-routine.Remade, program.Scratch, "%s.backward", name)
	return max(forward+routine.Forward, backward+routine.Backward) - min(forward, backward)
}

// stack places everything that one micro-batch keeps: activations grow from
// the base, and gradients from the top downwards into what backward has freed.
// Below unit l's backward there are the activations of the units up to l, above
// it the gradients of those from l on; its scratch lies between. The region is
// the least in which every such moment has room.
func (compiler *compiler) stack(arena *arena, device *device) {
	base := arena.top
	var size, saved, grads int64
	routines := compiler.routinesOf(device)
	for number := len(routines) - 1; number >= 0; number-- {
		saved += routines[number].Input + routines[number].Saved
	}
	for number := len(routines) - 1; number >= 0; number-- {
		routine := routines[number]
		// Its recompute runs before there are gradients of its own.
		if routine.Remade > 0 {
			size = max(size, saved+routine.Forward+grads)
		}
		grads += routine.Grads
		size = max(size, saved+routine.Backward+grads)
		saved -= routine.Input + routine.Saved
	}
	size = max(size, grads) // the optimizer's step
	for _, stage := range device.stages {
		size = max(size, compiler.stackStage(arena, stage, base, base+saved))
		for number := range stage.routines {
			saved += stage.routines[number].Input + stage.routines[number].Saved
		}
	}
	arena.top = base + size
	top := arena.top
	for number := len(routines) - 1; number >= 0; number-- {
		unit := &compiler.units[routines[number].unit]
		top -= unit.Grads
		unit.grads = arena.at(top, unit.Grads, program.Gradient, "%s.grads", unit.name)
	}
}

// stackStage places the activations of a stage from at on, with the scratch,
// and returns the most above the base that a forward takes. A forward writes
// its output into the input that a later unit keeps: its scratch lies above.
func (compiler *compiler) stackStage(arena *arena, stage *stage, base, at int64) (most int64) {
	ends := make([]int64, len(stage.routines)) // of the inputs
	end := at
	for number := range stage.routines {
		routine := &stage.routines[number]
		name := compiler.units[routine.unit].name
		routine.input = []int32{arena.at(end, routine.Input, program.Saved, "%s.input[0]", name)}
		ends[number] = end + routine.Input
		routine.saved = []int32{arena.at(ends[number], routine.Saved, program.Saved, "%s.saved[0]", name)}
		end = ends[number] + routine.Saved
	}
	for number := range stage.routines {
		routine := &stage.routines[number]
		own := ends[number] + routine.Saved
		forward := own
		if routine.target >= 0 {
			forward = ends[routine.target]
		}
		compiler.scratch(arena, routine, forward, own)
		most = max(most, forward+routine.Forward-base)
	}
	return most
}

// routinesOf are a device's in order of execution.
func (compiler *compiler) routinesOf(device *device) (routines []*routine) {
	for _, stage := range device.stages {
		for number := range stage.routines {
			routines = append(routines, &stage.routines[number])
		}
	}
	return routines
}
