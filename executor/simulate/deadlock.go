package simulate

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/executor/program"
)

// DeadlockError is a program that does not come to its end: instructions that
// wait for each other, or for one that is not there.
type DeadlockError struct {
	// Blocked is what stands first on each stream that stopped, and what it waits
	// for, in words.
	Blocked []string
}

// Error implements error.
func (err *DeadlockError) Error() string {
	return fmt.Sprintf("deadlock: %d streams stop\n%s", len(err.Blocked), strings.Join(err.Blocked, "\n"))
}

// blocked is what every lane that did not come to its end shows.
func (played *player) blocked() []string {
	var all []string
	for lane := range played.head {
		if i := played.head[lane]; i != program.None {
			all = append(all, fmt.Sprintf("%s waits for %s", words(played.prog, i), played.lacked(i, played.shown[lane].lacks)))
		}
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

// words are an instruction's place, stream and [label].
func words(prog *program.Program, i int32) string {
	instr := &prog.Instrs[i]
	return prog.Place(i) + " " + prog.Devices[instr.Device].Streams[instr.Stream] + " " + label(prog, i)
}
