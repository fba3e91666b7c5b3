package program

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
)

// runner executes a program in one random interleaving. Instructions make values out of the values
// that they read; a block of bytes holds one. The results of every pass and step are kept by their
// words, or in a program of fences those that the fences read.
type runner struct {
	*Program
	*rand.Rand
	block    int64
	fences   bool
	memory   [][]uint64 // device, block
	cursor   [][]int    // device, stream: the next of lines
	lines    [][][]int32
	ran      []bool
	messages map[[2]int32]message
	made     map[string]uint64
	seed     maphash.Seed
}

// message is what is known of a channel's sequence.
type message struct{ sent, freed bool }

// block is what the sizes of generated pipelines are multiples of.
const block = 256

func newRunner(program *Program, random *rand.Rand, seed maphash.Seed) *runner {
	run := &runner{
		Program: program, Rand: random, block: block, seed: seed, ran: make([]bool, len(program.Instrs)),
		messages: make(map[[2]int32]message), made: make(map[string]uint64),
	}
	for _, device := range program.Devices {
		run.memory = append(run.memory, make([]uint64, device.Arena/block+64))
		run.cursor = append(run.cursor, make([]int, len(device.Streams)))
		lines := make([][]int32, len(device.Streams))
		for index := device.First; index < device.End; index++ {
			lines[program.Instrs[index].Stream] = append(lines[program.Instrs[index].Stream], index)
		}
		run.lines = append(run.lines, lines)
	}
	return run
}

// all runs what can run, one random instruction after another, and reports
// whether that is everything. A blocked instruction waits for
// another one.
func (run *runner) all(blocked, until int32) bool {
	left := len(run.Instrs)
	for left > 0 {
		var heads []int32
		for device := range run.lines {
			for stream, lines := range run.lines[device] {
				if at := run.cursor[device][stream]; at < len(lines) && run.ready(lines[at]) && (lines[at] != blocked && run.other(lines[at]) != blocked || until < 0 || run.ran[until]) {
					heads = append(heads, lines[at])
				}
			}
		}
		if len(heads) == 0 {
			return false
		}
		index := heads[run.IntN(len(heads))]
		left--
		run.do(index)
		if other := run.other(index); other >= 0 {
			left--
			run.do(other)
		}
	}
	return true
}

// other is the end that runs together with this one, or None.
func (run *runner) other(index int32) int32 {
	instr := &run.Instrs[index]
	if instr.Op != Send && instr.Op != Recv || run.Channels[instr.Channel].Slots > 0 {
		return None
	}
	for device := range run.lines {
		for stream, lines := range run.lines[device] {
			if at := run.cursor[device][stream]; at < len(lines) {
				head := &run.Instrs[lines[at]]
				if head.Channel == instr.Channel && head.Sequence == instr.Sequence && head.Op != instr.Op && (head.Op == Send || head.Op == Recv) && run.waited(lines[at]) {
					return lines[at]
				}
			}
		}
	}
	return None
}

func (run *runner) waited(index int32) bool {
	instr := &run.Instrs[index]
	for _, wait := range run.Waits[instr.FirstWait:instr.EndWait] {
		if !run.ran[wait.Instr] {
			return false
		}
	}
	return true
}

// ready reports an instruction at the head of its stream that can run now.
func (run *runner) ready(index int32) bool {
	instr := &run.Instrs[index]
	if !run.waited(index) {
		return false
	}
	if instr.Op != Send && instr.Op != Recv {
		return true
	}
	slots := run.Channels[instr.Channel].Slots
	if slots == 0 {
		return run.other(index) != None
	}
	if instr.Op == Recv {
		return run.messages[[2]int32{instr.Channel, instr.Sequence}].sent
	}
	return instr.Sequence < slots || run.messages[[2]int32{instr.Channel, instr.Sequence - slots}].freed
}

func (run *runner) blocks(buffer int32) []uint64 {
	of := &run.Buffers[buffer]
	return run.memory[of.Device][of.Offset/run.block : (of.Offset+of.Bytes)/run.block]
}

func (run *runner) hash(values ...any) uint64 {
	return maphash.String(run.seed, fmt.Sprint(values...))
}

// sums reports a buffer that is added to in whatever order.
func (run *runner) sums(buffer int32) bool {
	class := run.Buffers[buffer].Class
	return class == Gradient || class == Result
}

func (run *runner) do(index int32) {
	instr := &run.Instrs[index]
	run.ran[index] = true
	run.cursor[instr.Device][instr.Stream]++
	accesses := run.Accesses[instr.FirstAccess:instr.EndAccess]
	words := fmt.Sprint(instr.Device, instr.Op, instr.Routine, instr.MicroBatch)
	value := run.hash(words)
	for _, access := range accesses {
		words += fmt.Sprint(" ", access.Mode, run.Buffers[access.Buffer].Name)
		if access.Mode == Read || access.Mode == Accumulate && !run.sums(access.Buffer) {
			value = run.hash(value, run.blocks(access.Buffer))
		}
	}
	key := [2]int32{instr.Channel, instr.Sequence}
	switch instr.Op { //nolint:exhaustive // the others make values
	case Send:
		run.fill(instr, accesses)
		state := run.messages[key]
		state.sent = true
		run.messages[key] = state
		return
	case Recv:
		return
	case Free:
		state := run.messages[key]
		state.freed = true
		run.messages[key] = state
		return
	}
	for i, access := range accesses {
		if access.Mode == Read {
			continue
		}
		for j := range run.blocks(access.Buffer) {
			made := run.hash(value, i, j)
			if access.Mode == Accumulate && run.sums(access.Buffer) {
				made += run.blocks(access.Buffer)[j]
			}
			run.blocks(access.Buffer)[j] = made
		}
	}
	if instr.Op.Runs() || instr.Op == Step || run.fences && instr.Op == Fence { // no rule says when a fence looks at a result
		run.made[words] = value
	}
}

// fill copies what a send reads into the slot that the receive names.
func (run *runner) fill(instr *Instr, accesses []Access) {
	var sent []uint64
	for _, access := range accesses {
		sent = append(sent, run.blocks(access.Buffer)...)
	}
	for i := range run.Instrs {
		recv := &run.Instrs[i]
		if recv.Op != Recv || recv.Channel != instr.Channel || recv.Sequence != instr.Sequence {
			continue
		}
		for _, access := range run.Accesses[recv.FirstAccess:recv.EndAccess] {
			copy(run.blocks(access.Buffer), sent)
		}
	}
}

// runsToItsEnd runs a program without memory.
func runsToItsEnd(program *Program) bool {
	made := *program
	made.Accesses = nil
	made.Instrs = append([]Instr(nil), program.Instrs...)
	made.Devices = append([]Device(nil), program.Devices...)
	for i := range made.Instrs {
		made.Instrs[i].FirstAccess, made.Instrs[i].EndAccess = 0, 0
	}
	for i := range made.Devices {
		made.Devices[i].Arena = 0
	}
	return newRunner(&made, rand.New(rand.NewPCG(1, 1)), maphash.MakeSeed()).all(None, None)
}
