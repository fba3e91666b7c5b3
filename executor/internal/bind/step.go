package bind

import (
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// step binds an instruction of the optimizer. Which one it is follows from what it writes.
func (frame *frame) step() error {
	norms, total := frame.find(theNorms, whichever, program.Write), frame.find(theTotal, whichever, program.Write)
	switch {
	case norms != program.None:
		return frame.norms(norms)
	case total != program.None:
		from := frame.find(theNorms, whichever, program.Read)
		if from == program.None {
			return errors.New("a total of no norms")
		}
		frame.out.Total = &Total{frame.start(from), frame.start(total), frame.normCount()}
		frame.read(from)
		frame.spots = append(frame.spots, spot{total, frame.start(total), frame.start(total) + 4, frame.start(total) + 4})
		return nil
	}
	grads := frame.find(ofGrads, whichever, program.Read)
	if grads == program.None {
		return errors.New("a step that reads no gradients")
	}
	frame.unit = int(frame.kinds[grads].of)
	return frame.update()
}

// normCount returns the number of parameters that have a norm.
func (bound *Bound) normCount() int64 {
	last := len(bound.units) - 1
	return bound.units[last].norms + bound.Recipe.Units[last].Tensors
}

// norms binds the squared norms of the gradients of parameters that units of this device own. Norms
// from the devices after it are copied from a message.
func (frame *frame) norms(to int32) error {
	count := frame.normCount()
	frame.out.Norms = &Norms{From: -1, To: frame.start(to), Count: count}
	frame.spots = append(frame.spots, spot{to, frame.start(to), frame.start(to) + 4*count, frame.start(to) + 4*count})
	if from := frame.find(slotNorm, whichever); from != program.None {
		frame.out.Norms.From = frame.start(from)
		frame.read(from)
	}
	for index := range frame.units {
		if frame.units[index].device != frame.instr.Device || frame.Recipe.Units[index].Tensors == 0 {
			continue
		}
		grads := frame.find(ofGrads, index)
		run, err := frame.add(index, frame.Recipe.Units[index].Code.Norms.Kernels, sites{gradientClass: {buffer: grads}, normsClass: {to, 4 * frame.units[index].norms}})
		if err == nil {
			err = frame.uses(run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// update binds the step of a unit's parameters. It also updates copies of tied parameters, if the
// unit is their first use on this device.
func (frame *frame) update() error {
	total := site{buffer: frame.find(theTotal, whichever)}
	if total.buffer == program.None {
		total.buffer = frame.find(slotTotal, whichever)
	}
	model := &frame.Recipe.Units[frame.unit]
	if model.Tensors > 0 {
		run, err := frame.add(frame.unit, model.Code.Step.Kernels, sites{
			weightClass: frame.own(ofWeights), masterClass: frame.own(ofMaster), stateClass: frame.own(ofState),
			gradientClass: frame.own(ofGrads), totalClass: total,
		})
		if err == nil {
			err = frame.uses(run)
		}
		if err != nil {
			return err
		}
	}
	for number := range frame.ties {
		if err := frame.copyOf(number, total); err != nil {
			return err
		}
	}
	return nil
}

// copyOf binds the update of a device's copy of a tied weight, like the owner's update on another
// device.
func (frame *frame) copyOf(number int, total site) error {
	tie := &frame.ties[number]
	first := slices.IndexFunc(tie.uses, func(use use) bool { return frame.units[use.unit].device == frame.instr.Device })
	if frame.units[tie.owner].device == frame.instr.Device || first < 0 || tie.uses[first].unit != frame.unit {
		return nil
	}
	owner, device := &frame.units[tie.owner].params[tie.param], frame.instr.Device
	sites := sites{totalClass: total}
	for _, each := range []struct {
		class  recipe.Class
		word   string
		tensor int
	}{{weightClass, "weights", owner.value}, {masterClass, "master", owner.master}, {stateClass, "state", owner.mean}} {
		if each.tensor >= 0 {
			buffer, shift := frame.weightOf(device, tie, each.word, each.tensor)
			sites[each.class] = site{buffer, shift}
		}
	}
	own := frame.units[frame.unit].params[tie.uses[first].param].gradient
	shift := frame.Recipe.Units[frame.unit].Code.Tensors[own].Offset - frame.Recipe.Units[tie.owner].Code.Tensors[owner.gradient].Offset
	sites[gradientClass] = site{frame.find(ofGrads, frame.unit), shift}
	run, err := frame.add(tie.owner, touching(frame.Recipe.Units[tie.owner].Code.Step.Kernels, owner.value), sites)
	if err != nil {
		return fmt.Errorf("copy of %s: %w", owner.full, err)
	}
	return frame.uses(run)
}

// touching returns the kernels that touch a tensor.
func touching(kernels []recipe.Kernel, tensor int) []recipe.Kernel {
	for index := range kernels {
		if slices.ContainsFunc(kernels[index].Operands, func(operand recipe.Operand) bool { return operand.Tensor == tensor }) {
			return kernels[index : index+1]
		}
	}
	return nil
}

// uses finds the gradients of all uses, for every gradient of a run whose weight is tied.
func (frame *frame) uses(run *Run) error {
	for number := range frame.units[run.Unit].params {
		param := &frame.units[run.Unit].params[number]
		if param.tie < 0 || param.gradient < 0 || run.Offsets[param.gradient] < 0 {
			continue
		}
		if run.Uses == nil {
			run.Uses = make([][]int64, len(run.Offsets))
		}
		for _, use := range frame.ties[param.tie].uses {
			offset, err := frame.useAt(param, use)
			if err != nil {
				return err
			}
			run.Uses[param.gradient] = append(run.Uses[param.gradient], offset)
		}
	}
	return nil
}

// useAt returns the offset of the gradient of one use of a tied parameter.
func (frame *frame) useAt(param *param, use use) (int64, error) {
	buffer := frame.gradientOf(frame.instr.Device, param.tie, use)
	tensor := frame.units[use.unit].params[use.param].gradient
	if buffer == program.None || tensor < 0 {
		return 0, fmt.Errorf("the gradient of %s in unit %q has no place on this device", param.full, frame.Recipe.Units[use.unit].Name)
	}
	made := &frame.Program.Buffers[buffer]
	if _, accessed := frame.mode(buffer); !accessed {
		return 0, fmt.Errorf("the gradient of %s in unit %q lies in %s, which the instruction does not access", param.full, frame.Recipe.Units[use.unit].Name, made.Name)
	}
	frame.read(buffer)
	at := &frame.Recipe.Units[use.unit].Code.Tensors[tensor]
	if end := at.Offset + at.Rows*at.Columns*bytesOf(at.DType); end > made.Bytes {
		return 0, fmt.Errorf("the gradient of %s in unit %q ends at byte %d of %s, which has %d", param.full, frame.Recipe.Units[use.unit].Name, end, made.Name, made.Bytes)
	}
	return made.Offset + at.Offset, nil
}
