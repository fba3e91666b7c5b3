package bind

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// add binds kernels of a unit to sites, and returns their run.
func (frame *frame) add(unit int, kernels []recipe.Kernel, sites sites) (*Run, error) {
	code := frame.Recipe.Units[unit].Code
	run := Run{Unit: unit, Offsets: make([]int64, len(code.Tensors)), parts: frame.parts(), code: code}
	for tensor := range run.Offsets {
		run.Offsets[tensor] = -1
	}
	binder := &binder{frame, &run, sites, make([]int32, len(code.Tensors))}
	run.Kernels = make([]recipe.Kernel, 0, len(kernels))
	for index := range kernels {
		kernel := &kernels[index]
		if binder.unwanted(kernel) {
			continue
		}
		for number := range kernel.Operands {
			if err := binder.operand(&kernel.Operands[number]); err != nil {
				return nil, fmt.Errorf("%s of unit %q: %w", kernel.Name, frame.Recipe.Units[unit].Name, err)
			}
		}
		binder.written(kernel)
		run.Kernels = append(run.Kernels, *kernel)
	}
	frame.out.Runs = append(frame.out.Runs, run)
	return &frame.out.Runs[len(frame.out.Runs)-1], nil
}

// binder gives the tensors of one run their places.
type binder struct {
	*frame
	run   *Run
	sites sites
	in    []int32 // buffers, by tensor
}

// unwanted reports whether the kernel finds the next ids after the last token, when no one waits
// for them.
func (binder *binder) unwanted(kernel *recipe.Kernel) bool {
	for number := range kernel.Operands {
		operand := &kernel.Operands[number]
		if tensor := &binder.run.code.Tensors[operand.Tensor]; operand.Mode != reads && tensor.Class == resultClass && tensor.Name == idsName {
			return binder.sites[idsSite].buffer == program.None
		}
	}
	return false
}

// idsSite is the site of generated ids. Each micro-batch has its own buffer.
const idsSite recipe.Class = "result.ids"

// operand gives the operand's tensor a place, if it has none yet, and checks it against the
// instruction's accesses.
func (binder *binder) operand(operand *recipe.Operand) error {
	tensor := &binder.run.code.Tensors[operand.Tensor]
	if binder.run.Offsets[operand.Tensor] < 0 {
		buffer, first, end, err := binder.locate(operand.Tensor)
		if err != nil {
			return fmt.Errorf("%s %q has no place: %w", tensor.Class, tensor.Name, err)
		}
		made := &binder.Program.Buffers[buffer]
		if first < made.Offset || end > made.Offset+made.Bytes {
			return fmt.Errorf("%s %q takes bytes %d to %d of %s, which has %d", tensor.Class, tensor.Name, first-made.Offset, end-made.Offset, made.Name, made.Bytes)
		}
		binder.run.Offsets[operand.Tensor], binder.in[operand.Tensor] = binder.part(operand.Tensor, first), buffer
		binder.spots = append(binder.spots, spot{buffer: buffer, first: first, end: end})
	}
	return binder.allowed(operand)
}

// locate returns the buffer of a tensor and its bytes in the arena: those of all micro-batches if
// the tensor has them.
func (binder *binder) locate(index int) (buffer int32, first, end int64, err error) {
	tensor := &binder.run.code.Tensors[index]
	size := tensor.Rows * tensor.Columns * bytesOf(tensor.DType)
	at, known := binder.sites[tensor.Class]
	shift := tensor.Offset
	switch {
	case tensor.Class == weightClass && tensor.Tie >= 0:
		tie := &binder.ties[binder.units[binder.run.Unit].params[binder.units[binder.run.Unit].byTensor[index]].tie]
		owned := binder.units[tie.owner].params[tie.param].value
		at.buffer, at.shift = binder.weightOf(binder.instr.Device, tie, "weights", owned)
		shift, known = binder.Recipe.Units[tie.owner].Code.Tensors[owned].Offset, true
	case tensor.Class == resultClass && tensor.Name == idsName:
		at, known = binder.sites[idsSite]
		shift, size = 0, size/binder.parts()
	}
	if !known || at.buffer == program.None {
		return 0, 0, 0, fmt.Errorf("the instruction has no buffer of it")
	}
	first = binder.start(at.buffer) + at.shift + shift
	return at.buffer, first, first + size, nil
}

// part returns the offset of the instruction's micro-batch in a tensor of all of them.
func (binder *binder) part(index int, first int64) int64 {
	tensor := &binder.run.code.Tensors[index]
	if !tensor.Parts || tensor.Class == resultClass && tensor.Name == idsName {
		return first
	}
	return first + int64(binder.instr.MicroBatch)*(tensor.Rows/binder.parts())*tensor.Columns*bytesOf(tensor.DType)
}
