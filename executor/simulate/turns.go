package simulate

import "github.com/devmap-dev/devmap/executor/program"

// turns are the GPUs that devices share; nil: each device has one of its own.
type turns struct {
	of    []int32 // by device: its GPU
	until []int64 // by GPU: when the kernels that it was given end
	last  []int32 // and which instruction they are of
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

// waits puts an instruction off whose GPU is at another's kernels, to when these end.
// Events come in the order of their times: whoever takes the GPU found it free, and
// nobody who was there before wants it.
func (played *player) waits(next event) bool {
	if played.turns == nil {
		return false
	}
	index := played.head[next.lane]
	instr := &played.prog.Instrs[index]
	if !instr.Op.Runs() && instr.Op != program.Step {
		return false
	}
	gpu := played.turns.of[instr.Device]
	if until := played.turns.until[gpu]; until > next.time {
		own := &played.shown[next.lane]
		own.time, own.cause = until, played.turns.last[gpu]
		played.queue.push(event{until, next.lane})
		return true
	}
	played.turns.until[gpu], played.turns.last[gpu] = next.time+ticks(played.prog, instr), index
	return false
}
