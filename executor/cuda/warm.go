//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// warm runs every kernel of the program once in each of its forms. Drivers load a kernel when it
// first runs, and libraries choose their algorithms. After that a step takes no more memory, and
// the first step takes as long as the second. Arenas are zero meanwhile, so that ids are valid and
// kernels stay in bounds, and poison again afterwards.
func (works *works) warm(fleet *fleet) error {
	for _, device := range fleet.devices {
		if err := device.do(func() error { return works.warmOn(fleet, device) }); err != nil {
			return err
		}
	}
	return nil
}

func (works *works) warmOn(fleet *fleet, device *device) error {
	if device.arena == nil {
		return nil
	}
	if err := device.whitewash(0); err != nil {
		return err
	}
	warming := &warming{
		device: device, known: make(map[string]bool),
		step: kernel.Step{Number: 1, Optimizer: &executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}},
	}
	for index := device.plan.First; index < device.plan.End; index++ {
		if works.cached[index] == nil {
			continue
		}
		warming.step.Queue = device.lanes.Queue(int(fleet.program.Instrs[index].Stream))
		if err := warming.instr(works.cached[index]); err != nil {
			return fmt.Errorf("instruction %s: %w", fleet.program.Line(index), err)
		}
	}
	if err := fleet.finish(device, fmt.Sprintf("%v: the program's kernels, each of which runs once at the start", device.lanes)); err != nil {
		return err
	}
	for i := range warming.looked {
		warming.looked[i].consume() // of zeros
	}
	return device.whitewash(executor.Poison)
}

// warming is a device whose kernels run once.
type warming struct {
	device *device
	step   kernel.Step
	known  map[string]bool // forms that ran
	key    []byte
	looked []finding // of the instruction whose search for NaN has run
}

// instr runs the forms of an instruction that have not run yet.
func (warming *warming) instr(made *prepared) error {
	for name, used := range map[string]bool{"total": made.total, "carry": made.decodes} { // their module is loaded now
		if !used {
			continue
		}
		if _, err := warming.device.kernels.Function(name); err != nil {
			return err
		}
	}
	for i := range made.runs {
		pass := &made.runs[i]
		if len(warming.looked) == 0 && len(pass.finite) > 0 {
			warming.looked = made.found
			if err := pass.finite[0](&warming.step); err != nil {
				return err
			}
		}
		for j, call := range pass.calls {
			if warming.key = form(warming.key[:0], call); warming.known[string(warming.key)] {
				continue
			}
			warming.known[string(warming.key)] = true
			if err := pass.launches[j](&warming.step); err != nil {
				return err
			}
		}
	}
	return nil
}

// form returns equal keys for calls that run the same code on matrices of the same sizes.
func form(key []byte, call *kernel.Call) []byte {
	key = append(key, call.Kernel.Name...)
	for _, dim := range call.Kernel.Dims {
		key = append(append(append(append(key, ' '), dim.Name...), '='), dim.Value...)
	}
	for i := range call.Operands {
		matrix := &call.Operands[i]
		key = fmt.Appendf(key, " %v%d %dx%d/%d", matrix.DType, call.Kernel.Operands[i].Mode, matrix.Rows, matrix.Columns, matrix.Stride)
		key = binary.LittleEndian.AppendUint16(key, uint16(matrix.Address&-matrix.Address)) // how it is aligned
	}
	for i := range call.Uses {
		key = fmt.Append(key, " ", len(call.Uses[i]))
	}
	return fmt.Append(key, call.Begins)
}
