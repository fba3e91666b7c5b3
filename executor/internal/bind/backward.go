package bind

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// back binds a backward. The gradient comes in a message or in the working buffer, and leaves the
// same way.
func (frame *frame) back(kernels []recipe.Kernel) error {
	sites := frame.lastingSites()
	sites[inputClass], sites[savedClass] = frame.own(ofInput), frame.own(ofSaved)
	sites[lateClass], sites[pendingClass] = frame.own(ofLate), frame.own(ofPending)
	if frame.Recipe.Units[frame.unit].Remade > 0 {
		sites[savedClass] = frame.own(ofRemade)
	}
	sites[temporaryClass], sites[gradientClass] = frame.own(ofBackward), frame.own(ofGrads)
	from, to := frame.stream()
	sites[outputGradientClass], sites[inputGradientClass] = site{buffer: from}, site{buffer: to}
	if to == program.None {
		sites[inputGradientClass] = site{buffer: from}
	}
	run, err := frame.add(frame.unit, kernels, sites)
	if err != nil {
		return err
	}
	run.begin(frame, sites)
	if from != program.None && to != program.None && from != to && !run.makes(inputGradientClass) {
		copied, err := frame.copied(from, to)
		if err != nil {
			return err
		}
		run.After = append(run.After, copied)
	}
	return nil
}

// begin records whether gradients are overwritten.
func (run *Run) begin(frame *frame, sites sites) {
	run.Begins = true
	if grads := sites[gradientClass].buffer; grads != program.None {
		mode, _ := frame.mode(grads)
		run.Begins = mode == program.Write
	}
}

// learn binds the second half of a backward: the gradients of weights.
func learn(frame *frame, kernels []recipe.Kernel) error {
	sites := frame.lastingSites()
	sites[inputClass], sites[lateClass], sites[pendingClass] = frame.own(ofInput), frame.own(ofLate), frame.own(ofPending)
	sites[temporaryClass], sites[gradientClass] = frame.own(ofLearn), frame.own(ofGrads)
	run, err := frame.add(frame.unit, kernels, sites)
	if err == nil {
		run.begin(frame, sites)
	}
	return err
}

// stream returns the buffers in which the gradient of the stream comes and leaves.
func (frame *frame) stream() (from, to int32) {
	from = frame.find(slotGrad, whichever)
	if from == program.None {
		from = frame.find(theGradient, whichever, program.Read, program.Accumulate)
	}
	to = frame.find(aDout, whichever)
	if to == program.None {
		to = frame.find(theGradient, whichever, program.Write, program.Accumulate)
	}
	return from, to
}

// makes reports whether a run writes a tensor of a class.
func (run *Run) makes(class recipe.Class) bool {
	for index := range run.Kernels {
		for number := range run.Kernels[index].Operands {
			if operand := &run.Kernels[index].Operands[number]; operand.Mode != reads && run.code.Tensors[operand.Tensor].Class == class {
				return true
			}
		}
	}
	return false
}

// passThrough binds a stage of units that only pass the stream: it copies what came in, forward or
// back.
func (frame *frame) passThrough() error {
	from, to := frame.find(slotAct, whichever), frame.find(anOut, whichever)
	switch frame.instr.Op {
	case program.Backward, program.BackwardInput:
		from, to = frame.find(slotGrad, whichever), frame.find(aDout, whichever)
	case program.Decode:
		from, to = frame.find(slotTok, whichever), frame.find(aToken, whichever)
	default:
	}
	if from == program.None || to == program.None {
		return fmt.Errorf("unit %q only passes messages, and lacks the incoming or the outgoing one", frame.Recipe.Units[frame.unit].Name)
	}
	copied, err := frame.copied(from, to)
	if err != nil {
		return err
	}
	frame.out.Runs = append(frame.out.Runs, Run{Unit: frame.unit, Before: []Copy{copied}, parts: frame.parts(), code: frame.Recipe.Units[frame.unit].Code})
	return nil
}
