package simulate

import "github.com/devmap-dev/devmap/executor/program"

// turns are the GPUs that devices share; nil: each device has its own.
type turns struct {
	of    []int32 // by device: its GPU
	until []int64 // by GPU: when its last kernels end
	last  []int32 // by GPU: the instruction of these
}

func newTurns(on []int) *turns {
	all := &turns{of: make([]int32, len(on))}
	numbers := make(map[int]int32)
	for device, gpu := range on {
		number, known := numbers[gpu]
		if !known {
			number = int32(len(numbers))
			numbers[gpu] = number
			all.until, all.last = append(all.until, 0), append(all.last, program.None)
		}
		all.of[device] = number
	}
	return all
}

// waits delays an instruction whose GPU runs another one's kernels until these end. Events come in
// order of time: a free GPU goes to the first event, as all earlier ones are done.
func (sim *simulation) waits(next event) bool {
	if sim.turns == nil {
		return false
	}
	index := sim.head[next.lane]
	instr := &sim.prog.Instrs[index]
	if !instr.Op.Runs() && instr.Op != program.Step {
		return false
	}
	gpu := sim.turns.of[instr.Device]
	if until := sim.turns.until[gpu]; until > next.time {
		own := &sim.shown[next.lane]
		own.time, own.cause = until, sim.turns.last[gpu]
		sim.queue.push(event{until, next.lane})
		return true
	}
	sim.turns.until[gpu], sim.turns.last[gpu] = next.time+ticks(sim.prog, instr), index
	return false
}
