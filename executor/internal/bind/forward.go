package bind

import (
	"errors"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// lastingSites are the sites of buffers that live throughout, and of the caller's result.
func (frame *frame) lastingSites() sites {
	return sites{
		weightClass: frame.own(ofWeights), cacheClass: frame.own(ofCache), feedClass: frame.own(ofFeed),
		resultClass: {buffer: frame.find(theResult, whichever)},
	}
}

// keep binds a forward in training. The unit's input and what backward reads are kept. The output
// is written into what the next unit keeps, or into a message.
func (frame *frame) keep(kernels []recipe.Kernel) error {
	sites := frame.lastingSites()
	var before []Copy
	input, slot := frame.find(ofInput, frame.unit), frame.find(slotAct, whichever)
	target := frame.target()
	switch {
	case input != program.None && slot != program.None:
		copied, err := frame.copied(slot, input)
		if err != nil {
			return err
		}
		before = append(before, copied)
	case input != program.None:
	case frame.Recipe.Units[frame.unit].Input > 0:
		return errors.New("it has no buffer of its input")
	case slot != program.None:
		input = slot
	default:
		input = target // it is added to in place
	}
	sites[inputClass], sites[outputClass] = site{buffer: input}, site{buffer: target}
	sites[savedClass], sites[lateClass], sites[temporaryClass] = frame.own(ofSaved), frame.own(ofLate), frame.own(ofForward)
	if remade := frame.Recipe.Units[frame.unit].Remade; remade > 0 {
		// Tensors that are not kept lie before the temporaries.
		sites[savedClass] = frame.own(ofForward)
		sites[temporaryClass] = site{sites[temporaryClass].buffer, remade}
	}
	run, err := frame.add(frame.unit, kernels, sites)
	if err == nil {
		run.Before = before
	}
	return err
}

// target returns the buffer of a forward's output: another unit's input, or a message.
func (frame *frame) target() int32 {
	for _, access := range frame.accesses {
		if kind := frame.kinds[access.Buffer]; access.Mode != program.Read && kind.what == ofInput && int(kind.of) != frame.unit {
			return access.Buffer
		}
	}
	return frame.find(anOut, whichever)
}

// again binds the recompute of what backward reads and forward did not keep. The last kernel may
// also make the unit's output. Nothing reads it, so that operand is dropped.
func (frame *frame) again(kernels []recipe.Kernel) error {
	sites := frame.lastingSites()
	sites[inputClass] = frame.own(ofInput)
	sites[savedClass], sites[temporaryClass] = frame.own(ofRemade), frame.own(ofRecompute)
	code := frame.Recipe.Units[frame.unit].Code
	kernels = slices.Clone(kernels)
	for index := range kernels {
		kernels[index].Operands = slices.DeleteFunc(slices.Clone(kernels[index].Operands), func(operand recipe.Operand) bool {
			return code.Tensors[operand.Tensor].Class == outputClass
		})
	}
	_, err := frame.add(frame.unit, kernels, sites)
	return err
}

// flow binds a forward or a token's decode without training. The stream is changed in place, except
// at the ends of a chunk.
func (frame *frame) flow(kernels []recipe.Kernel, scratch what) error {
	sites := frame.lastingSites()
	in, out := slotAct, anOut
	if frame.instr.Op == program.Decode {
		in, out = slotTok, aToken
	}
	sites[inputClass] = frame.either(frame.find(in, whichever), theStream, program.Read, program.Accumulate)
	sites[tokenClass] = frame.either(frame.find(slotIDs, whichever), theIDs, program.Read)
	sites[outputClass] = frame.either(frame.find(out, whichever), theStream, program.Write, program.Accumulate)
	sites[idsSite] = site{buffer: frame.find(theIDs, whichever, program.Write)}
	sites[temporaryClass] = frame.own(scratch)
	run, err := frame.add(frame.unit, kernels, sites)
	if err == nil {
		run.Past = frame.Past(frame.at)
	}
	return err
}

// either is the buffer or, if there is none, the buffer of a kind.
func (frame *frame) either(buffer int32, what what, modes ...program.Mode) site {
	if buffer == program.None {
		buffer = frame.find(what, whichever, modes...)
	}
	return site{buffer: buffer}
}
