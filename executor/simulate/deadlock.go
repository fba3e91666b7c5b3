package simulate

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/executor/program"
)

// DeadlockError is a program that does not come to its end: instructions that
// wait for each other, or for one that is not there.
type DeadlockError struct {
	// Blocked is what each stream that stopped waits for.
	Blocked []Blocked
}

// Blocked is an instruction that never starts.
type Blocked struct {
	Instr int32  // index in Instrs
	For   int32  // what it waits for, index in Instrs, or None where the program has no such instruction
	Text  string // both, in words
}

func (err *DeadlockError) Error() string {
	lines := make([]string, 0, len(err.Blocked)+1)
	lines = append(lines, fmt.Sprintf("deadlock: %d streams stop", len(err.Blocked)))
	for _, blocked := range err.Blocked {
		lines = append(lines, blocked.Text)
	}
	return strings.Join(lines, "\n")
}

// blocked is what every lane that did not come to its end shows.
func (played *player) blocked() []Blocked {
	var all []Blocked
	for lane := range played.head {
		i := played.head[lane]
		if i == program.None {
			continue
		}
		lacks := played.shown[lane].lacks
		all = append(all, Blocked{i, lacks, fmt.Sprintf("%s waits for %s", words(played.prog, i), played.lacked(i, lacks))})
	}
	return all
}

// lacked is what an instruction waits for, in words.
func (played *player) lacked(i, lacks int32) string {
	if lacks != program.None {
		return words(played.prog, lacks)
	}
	instr := &played.prog.Instrs[i]
	if instr.Channel < 0 {
		return "an instruction that the program has not"
	}
	channel := &played.prog.Channels[instr.Channel]
	switch {
	case instr.Op == program.Recv:
		return fmt.Sprintf("a send of %s#%d: there is none", channel.Name, instr.Sequence)
	case channel.Slots == 0:
		return fmt.Sprintf("a recv of %s#%d: there is none", channel.Name, instr.Sequence)
	}
	return fmt.Sprintf("a free of %s#%d: there is none", channel.Name, instr.Sequence-channel.Slots)
}

// words are an instruction as its line begins: device and number, stream,
// operation, micro-batch or message.
func words(prog *program.Program, i int32) string {
	instr := &prog.Instrs[i]
	text := fmt.Sprintf("%s %s %s", prog.Place(i), prog.Devices[instr.Device].Streams[instr.Stream], instr.Op)
	if instr.Routine >= 0 {
		text += " " + prog.Routines[instr.Routine].Name
	}
	if instr.MicroBatch >= 0 {
		text += fmt.Sprintf(" mb%d", instr.MicroBatch)
	}
	if instr.Channel >= 0 {
		text += fmt.Sprintf(" %s#%d", prog.Channels[instr.Channel].Name, instr.Sequence)
	}
	return text
}
