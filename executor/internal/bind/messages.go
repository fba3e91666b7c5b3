package bind

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/program"
)

// messages checks that every message of the stream is read before its slot is released. An
// instruction that reads another buffer instead would be valid on its own. Squared norms are not
// checked: they also go to devices that update nothing.
func (bound *Bound) messages() error {
	prog := bound.Program
	type message struct{ channel, sequence int32 }
	slots := make(map[message]int32) // where each lies
	unread := make(map[int32]bool)   // by slot
	for index := range prog.Instrs {
		instr := &prog.Instrs[index]
		at := message{instr.Channel, instr.Sequence}
		switch instr.Op {
		case program.Recv:
			slots[at] = prog.Accesses[instr.FirstAccess].Buffer
			switch bound.kinds[slots[at]].what {
			case slotAct, slotGrad, slotTok, slotIDs:
				unread[slots[at]] = true
			default:
			}
			continue
		case program.Free:
			if slot := slots[at]; unread[slot] {
				return fmt.Errorf("%s %v: nothing has read the message in %s", prog.Place(int32(index)), instr.Op, prog.Buffers[slot].Name)
			}
			delete(slots, at)
			continue
		default:
		}
		for _, access := range prog.Accesses[instr.FirstAccess:instr.EndAccess] {
			delete(unread, access.Buffer)
		}
	}
	return nil
}
