package simulate

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/executor/program"
)

// DeadlockError is a program that does not run to its end: instructions wait for each other, or for
// one that does not exist.
type DeadlockError struct {
	// Blocked has the first instruction of each stream that stopped, and what it waits for.
	Blocked []string
}

// Error implements error.
func (err *DeadlockError) Error() string {
	return fmt.Sprintf("deadlock: %d streams stop\n%s", len(err.Blocked), strings.Join(err.Blocked, "\n"))
}

// blocked lists what every stopped lane waits for.
func (sim *simulation) blocked() []string {
	var all []string
	for lane := range sim.head {
		if i := sim.head[lane]; i != program.None {
			all = append(all, fmt.Sprintf("%s waits for %s", words(sim.prog, i), sim.lacked(i, sim.shown[lane].lacks)))
		}
	}
	return all
}

// lacked describes what an instruction waits for.
func (sim *simulation) lacked(i, lacks int32) string {
	if lacks != program.None {
		return words(sim.prog, lacks)
	}
	instr := &sim.prog.Instrs[i]
	if instr.Channel < 0 {
		return "an instruction that the program has not"
	}
	channel := &sim.prog.Channels[instr.Channel]
	switch {
	case instr.Op == program.Recv:
		return fmt.Sprintf("a send of %s#%d: there is none", channel.Name, instr.Sequence)
	case channel.Slots == 0:
		return fmt.Sprintf("a recv of %s#%d: there is none", channel.Name, instr.Sequence)
	}
	return fmt.Sprintf("a free of %s#%d: there is none", channel.Name, instr.Sequence-channel.Slots)
}

// words returns an instruction's place, stream and [label].
func words(prog *program.Program, i int32) string {
	instr := &prog.Instrs[i]
	return prog.Place(i) + " " + prog.Devices[instr.Device].Streams[instr.Stream] + " " + label(prog, i)
}
