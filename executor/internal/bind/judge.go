package bind

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// allowed checks an operand against the mode in which the instruction accesses its buffer. A buffer
// that is only read must not be written. One that the instruction overwrites must not be read
// before it is written.
func (binder *binder) allowed(operand *recipe.Operand) error {
	tensor := &binder.run.code.Tensors[operand.Tensor]
	buffer := binder.in[operand.Tensor]
	name := binder.Program.Buffers[buffer].Name
	mode, accessed := binder.mode(buffer)
	switch {
	case !accessed:
		return fmt.Errorf("%s %q lies in %s, which the instruction does not access", tensor.Class, tensor.Name, name)
	case operand.Mode != reads && mode == program.Read:
		return fmt.Errorf("%s %q is written, and the instruction only reads %s", tensor.Class, tensor.Name, name)
	case (operand.Mode == reads || operand.Mode == updates) && mode == program.Write && !binder.made(buffer, operand.Tensor):
		return fmt.Errorf("%s %q is read before it is written, and the instruction overwrites %s", tensor.Class, tensor.Name, name)
	}
	return nil
}

// made reports whether this instruction has written something at a tensor's place.
func (binder *binder) made(buffer int32, tensor int) bool {
	for _, spot := range binder.spots {
		if spot.reach > 0 && spot.buffer == buffer && spot.first <= binder.run.Offsets[tensor] && binder.run.Offsets[tensor] < spot.end {
			return true
		}
	}
	return false
}

// written records what a kernel has written. If there are gaps between rows, the one after the last
// row is not written.
func (binder *binder) written(kernel *recipe.Kernel) {
	for number := range kernel.Operands {
		operand := &kernel.Operands[number]
		if operand.Mode == reads {
			continue
		}
		area := binder.run.Area(operand)
		end := area.Offset + ((area.Rows-1)*area.Stride+area.Columns)*bytesOf(area.DType)
		for at := range binder.spots {
			if spot := &binder.spots[at]; spot.buffer == binder.in[operand.Tensor] && spot.first <= binder.run.Offsets[operand.Tensor] && binder.run.Offsets[operand.Tensor] < spot.end {
				spot.reach = max(spot.reach, end)
			}
		}
	}
}

// copied returns a copy of a whole message between two buffers of the instruction.
func (frame *frame) copied(from, to int32) (Copy, error) {
	source, target := &frame.Program.Buffers[from], &frame.Program.Buffers[to]
	if source.Bytes != target.Bytes {
		return Copy{}, fmt.Errorf("%s has %d bytes, and %s, into which it is copied, %d", source.Name, source.Bytes, target.Name, target.Bytes)
	}
	if mode, _ := frame.mode(to); mode == program.Read {
		return Copy{}, fmt.Errorf("%s is copied into %s, which the instruction only reads", source.Name, target.Name)
	}
	frame.read(from)
	frame.spots = append(frame.spots, spot{to, target.Offset, target.Offset + target.Bytes, target.Offset + target.Bytes})
	return Copy{From: source.Offset, To: target.Offset, Bytes: source.Bytes}, nil
}

// read records a buffer that something other than an operand reads.
func (frame *frame) read(buffer int32) {
	frame.spots = append(frame.spots, spot{buffer: buffer})
}

// unwritten records the ends of buffers that the instruction overwrites but does not fill. A
// token's pass leaves the stream after its few rows as the prompt's pass made it. A buffer that is
// declared and not touched is a fault: another one was meant.
func (frame *frame) unwritten() error {
	for number, access := range frame.accesses {
		made := &frame.Program.Buffers[access.Buffer]
		if slices.ContainsFunc(frame.accesses[:number], func(other program.Access) bool { return other.Buffer == access.Buffer }) && frame.kinds[access.Buffer].what != theIDs {
			return fmt.Errorf("it accesses %s twice", made.Name)
		}
		used, end := false, int64(0)
		for _, spot := range frame.spots {
			if spot.buffer == access.Buffer {
				used, end = true, max(end, spot.reach)
			}
		}
		full := made.Offset + made.Bytes
		switch {
		case !used && (access.Mode != program.Read || !frame.spare(access.Buffer)):
			return fmt.Errorf("nothing of the recipe lies in %s, which the instruction accesses", made.Name)
		case access.Mode == program.Write && end == 0:
			return fmt.Errorf("nothing is written to %s, which the instruction writes whole", made.Name)
		case access.Mode == program.Write && end < full && (frame.instr.Op != program.Decode || frame.kinds[access.Buffer].what != theStream):
			frame.out.Unwritten = append(frame.out.Unwritten, Stretch{end, full - end})
		}
	}
	return nil
}

// spare reports whether the instruction may name a buffer that its kernels do not read. These are
// weights and inputs of a pass. To clip by the norm of all gradients they are gradients whose norm
// another device has.
func (frame *frame) spare(buffer int32) bool {
	switch kind := frame.kinds[buffer]; kind.what {
	case ofWeights, ofFeed:
		return frame.instr.Op.Runs()
	case ofInput, ofLate: // the second half of a backward reads it
		return frame.instr.Op == program.BackwardInput
	case ofGrads, slotTied:
		return frame.out.Norms != nil
	default:
		return false
	}
}
