package recipe

import "slices"

// measure adds up the unit's regions from the tensors of its kernels.
func (writer *writer) measure() {
	code, regions := &writer.code, &writer.regions
	back := passBackward
	if writer.train && writer.workload.Schedule.Split() {
		back = passInput
		(&splitter{writer: writer}).split()
		code.Learn.Scratch = code.pack(passWeight, code.Learn.Kernels)
		regions.Learn, regions.Learns = code.Learn.Scratch, len(code.Learn.Kernels) > 0
	}
	code.Forward.Scratch = code.pack(passForward, code.Forward.Kernels)
	code.Backward.Scratch = code.pack(back, code.Backward.Kernels)
	code.Decode.Scratch = code.pack(passDecode, code.Decode.Kernels)
	regions.Forward, regions.Backward, regions.Decode = code.Forward.Scratch, code.Backward.Scratch, code.Decode.Scratch
	for i := range code.Tensors {
		tensor := &code.Tensors[i]
		switch size := tensor.bytes(); {
		case tensor.Class == classInput && writer.train && writer.readBack(i):
			regions.Input = size
		case tensor.Class == classOutput && tensor.Name == string(classOutput):
			regions.Output = size
		case tensor.Class == classOutput:
			regions.Token = size
		}
	}
	if writer.recomputes(writer.unit) {
		code.Recompute.Kernels = code.again()
		regions.Remade, regions.Saved = regions.Saved, 0
		regions.Backward = regions.Remade + max(regions.Backward, regions.Forward)
		regions.Forward += regions.Remade
	}
	for _, routine := range []*Routine{&code.Forward, &code.Recompute, &code.Backward, &code.Learn, &code.Decode, &code.Norms, &code.Step} {
		routine.add()
	}
	code.Decode.addReads()
	writer.countFused()
}

// readBack reports a tensor that a kernel of backward reads.
func (writer *writer) readBack(tensor int) bool {
	return writer.code.Backward.touches(tensor) || writer.code.Learn.touches(tensor)
}

func (routine *Routine) touches(tensor int) bool {
	for i := range routine.Kernels {
		for j := range routine.Kernels[i].Operands {
			if routine.Kernels[i].Operands[j].Tensor == tensor {
				return true
			}
		}
	}
	return false
}

// addReads counts what products read and write in addition: with a row a
// sequence they are bound by reading the weights.
func (routine *Routine) addReads() {
	for i := range routine.Kernels {
		if kernel := &routine.Kernels[i]; kernel.Products > 0 {
			routine.Work.Traffic += kernel.Bytes
		}
	}
}

// add adds up the routine's kernels.
func (routine *Routine) add() {
	work := &routine.Work
	for i := range routine.Kernels {
		kernel := &routine.Kernels[i]
		work.Kernels++
		work.Attention += kernel.Attention
		switch {
		case kernel.Products > 0 && kernel.Unaligned:
			work.Unaligned += kernel.Products
		case kernel.Products > 0:
			work.Products += kernel.Products
		case kernel.Attention == 0:
			work.Traffic += kernel.Bytes
		}
	}
}

// again are forward's kernels that make backward's inputs, found from last to first; it skips
// kernels without a needed output.
func (code *Code) again() []Kernel {
	needed := make([]bool, len(code.Tensors))
	for i := range code.Tensors {
		needed[i] = code.Tensors[i].Class == classSaved
	}
	var kernels []Kernel
	for _, kernel := range slices.Backward(code.Forward.Kernels) {
		makes := slices.ContainsFunc(kernel.Operands, func(operand Operand) bool { return operand.Mode != modeRead && needed[operand.Tensor] })
		if !makes {
			continue
		}
		for _, operand := range kernel.Operands {
			needed[operand.Tensor] = true
		}
		kernels = append(kernels, kernel)
	}
	slices.Reverse(kernels)
	return kernels
}
