package bind

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor/program"
)

// moved checks a copy between device and host. The tensors of one unit follow each other in host
// memory: its input, and what its forward saved.
func moved(frame *frame) error {
	var host *program.Buffer
	var unit int32
	for _, access := range frame.accesses {
		if kind := frame.kinds[access.Buffer]; kind.what == ofHost {
			host, unit = &frame.Program.Buffers[access.Buffer], kind.of
		}
	}
	if host == nil {
		return errors.New("it has no buffer in host memory")
	}
	before := ofHost
	for _, access := range frame.accesses {
		kind, buffer := frame.kinds[access.Buffer], &frame.Program.Buffers[access.Buffer]
		if out := frame.instr.Op == program.Store; (access.Mode == program.Write) != ((kind.what == ofHost) == out) {
			return fmt.Errorf("%s is read or written the wrong way", buffer.Name)
		}
		if kind.what == ofHost {
			continue
		}
		saved := kind.what == ofInput || kind.what == ofSaved || kind.what == ofLate
		if !saved || kind.of != unit || before != ofHost && kind.what <= before {
			return fmt.Errorf("%s is not what %s has at this place", buffer.Name, host.Name)
		}
		before = kind.what
	}
	return nil
}
