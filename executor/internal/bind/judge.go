package bind

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// allowed holds an operand to the mode in which the instruction accesses its
// buffer: what is read only is not written, and what the instruction writes
// whole is not read before it has written it.
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

// made reports a tensor at whose place something was written by this instruction.
func (binder *binder) made(buffer int32, tensor int) bool {
	for _, spot := range binder.spots {
		if spot.reach > 0 && spot.buffer == buffer && spot.first <= binder.run.Offsets[tensor] && binder.run.Offsets[tensor] < spot.end {
			return true
		}
	}
	return false
}

// written notes what a kernel has written: where rows are shorter than what is
// between their beginnings, not what fills up the last.
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

// copied is a copy between two buffers of the instruction, of a whole message.
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

// read notes a buffer that is read otherwise than by an operand.
func (frame *frame) read(buffer int32) {
	frame.spots = append(frame.spots, spot{buffer: buffer})
}

// unwritten notes the ends of buffers that the instruction writes whole, where
// what it writes ends before they do. A token's pass leaves the stream after
// its few rows as the prompt's made it. What is declared and not touched is a
// fault: another buffer was meant.
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

// spare reports what an instruction names for all of its kind: weights and
// what is fed, whether its kernels read them or not, and to clip by them all
// gradients, including those whose norm another device has.
func (frame *frame) spare(buffer int32) bool {
	switch kind := frame.kinds[buffer]; kind.what {
	case ofWeights, ofFeed:
		return frame.instr.Op.Runs()
	case ofGrads, slotTied:
		return frame.out.Norms != nil
	default:
		return false
	}
}
