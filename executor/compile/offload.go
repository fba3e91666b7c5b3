package compile

import (
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/executor/program"
)

// moved places the saved tensors of routines that wait in host memory. A few sets are on the device
// ([costmodel.Regions.Moved]), which all passes of such routines take in turn. Host memory has a set
// for every micro-batch in flight.
func (layout *layout) moved() {
	most, host, sets := int64(0), int64(0), &layout.device.sets
	for _, stage := range layout.device.stages {
		for number := range stage.routines {
			most, *sets = max(most, stage.routines[number].Out()), max(*sets, int(stage.routines[number].Moved))
		}
	}
	places := make([]int32, *sets)
	for i := range places {
		places[i] = program.None
	}
	used := layout.device.movedSets()
	for _, stage := range layout.device.stages {
		for number := range stage.routines {
			routine := &stage.routines[number]
			if routine.Moved == 0 {
				continue
			}
			name := layout.units[routine.unit].name
			for slot := range places {
				layout.movedSet(routine, name, layout.top+int64(slot)*most, slot, &places[slot], used[routine.unit][slot])
			}
			for slot := range stage.depth.Late {
				routine.host = append(routine.host, layout.at(host, routine.Out(), program.Host, "%s.host[%d]", name, slot))
				host += routine.Out()
			}
		}
	}
	layout.top += int64(*sets) * most
}

// movedSets are the sets that each unit with moved tensors uses in any pass.
func (device *device) movedSets() map[int][]bool {
	used, turns := make(map[int][]bool), turns{sets: device.sets}
	for _, action := range device.actions {
		stage := device.stages[action.Chunk]
		for number, set := range turns.pass(stage, action) {
			unit := stage.routines[number].unit
			if used[unit] == nil {
				used[unit] = make([]bool, device.sets)
			}
			used[unit][set] = true
		}
	}
	return used
}

// movedSet places one set of a routine's tensors, if it is used. The first buffer there has the waits
// of all.
func (layout *layout) movedSet(routine *routine, name string, at int64, slot int, first *int32, used bool) {
	for _, part := range []struct {
		buffers *[]int32
		bytes   int64
		word    string
	}{{&routine.input, routine.Input, "input"}, {&routine.saved, routine.Saved, "saved"}, {&routine.late, routine.Late, "late"}} {
		buffer := program.None
		if used {
			buffer = layout.at(at, part.bytes, program.Saved, "%s.%s[%d]", name, part.word, slot)
		}
		*part.buffers = append(*part.buffers, buffer)
		at += part.bytes
		switch {
		case buffer == program.None:
		case *first == program.None:
			*first = buffer
			layout.moving[buffer] = true
		default:
			layout.above[buffer] = *first
		}
	}
}

// turns gives passes of routines with moved tensors the sets of a device in turn.
type turns struct{ sets, passed int }

// pass returns the set of each such routine for a pass of its stage, by the routine's number.
func (turns *turns) pass(stage *stage, action order.Action) map[int]int {
	sets := make(map[int]int)
	take := func(number int) {
		if routine := &stage.routines[number]; routine.Moved > 0 && (action.Kind != order.Weight || routine.Learns) {
			sets[number] = turns.passed % turns.sets
			turns.passed++
		}
	}
	for number := range stage.routines {
		if action.Kind == order.Forward {
			take(number)
		} else {
			take(len(stage.routines) - 1 - number)
		}
	}
	return sets
}

// slot is the set that a routine uses in a pass: its own one if its tensors move.
func (routine *routine) slot(sets sets, other int) int {
	if routine.Moved > 0 {
		return sets.moved[routine.number]
	}
	return other
}

// store copies what a routine's forward saved to host memory, after that forward, which is the last
// instruction.
func (train training) store(routine *routine, microBatch int32, sets sets) {
	if forward := train.last(); routine.Moved > 0 {
		train.copy(program.Store, "down", routine.ticks.Store, microBatch)
		train.await(forward)
		train.read(routine.inputOf(sets), routine.savedOf(sets), routine.lateOf(sets))
		train.write(of(routine.host, sets.late))
	}
}

// fetch copies it back.
func (train training) fetch(routine *routine, microBatch int32, sets sets) {
	if routine.Moved > 0 {
		train.copy(program.Fetch, "up", routine.ticks.Fetch, microBatch)
		train.read(of(routine.host, sets.late))
		train.write(routine.inputOf(sets), routine.savedOf(sets), routine.lateOf(sets))
	}
}

// copy begins a copy between device and host, on a stream of its own.
func (train training) copy(op program.Op, stream string, ticks int64, microBatch int32) {
	on := train.named(stream)
	instr := train.open(op, ticks)
	instr.Stream, instr.MicroBatch = on, microBatch
}
