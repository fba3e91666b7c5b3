//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// warm runs every kernel of the program once for each form that it is asked for in:
// drivers load a kernel when it runs first, and libraries choose how they multiply.
// What is held after that is what a step finds and leaves, and the first step takes
// as long as the second. Arenas are of zeros for the time of it, so that ids are
// some and no kernel goes astray, and poison again behind it.
func (machine *machine) warm() error {
	for i, device := range machine.devices {
		if err := device.do(func() error { return machine.warmOn(int32(i), device) }); err != nil {
			return err
		}
	}
	return nil
}

func (machine *machine) warmOn(number int32, device *device) error {
	if device.arena == nil {
		return nil
	}
	if err := device.whitewash(0); err != nil {
		return err
	}
	step := kernel.Step{Number: 1, Optimizer: &executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}
	known := make(map[string]bool)
	var key []byte
	var looked []finding
	for index := machine.program.Devices[number].First; index < machine.program.Devices[number].End; index++ {
		if machine.kept[index] == nil {
			continue
		}
		step.Stream = device.streams[machine.order.streams[machine.order.of[index]].number]
		if machine.kept[index].total != nil { // its module is loaded now
			if _, err := device.kernels.Function("total"); err != nil {
				return err
			}
		}
		for i := range machine.kept[index].runs {
			pass := &machine.kept[index].runs[i]
			if len(looked) == 0 && len(pass.finite) > 0 {
				looked = machine.kept[index].found
				if err := pass.finite[0](&step); err != nil {
					return err
				}
			}
			for j, call := range pass.calls {
				if key = form(key[:0], call); known[string(key)] {
					continue
				}
				known[string(key)] = true
				if err := pass.launches[j](&step); err != nil {
					return fmt.Errorf("instruction %s: %w", machine.program.Line(index), err)
				}
			}
		}
	}
	if err := machine.finish(device, fmt.Sprintf("device %d on %s: the program's kernels, each of which runs once at the start", device.plan.ID, device.gpu.place())); err != nil {
		return err
	}
	for i := range looked {
		looked[i].told() // of zeros
	}
	return device.whitewash(executor.Poison)
}

// form is equal for calls that run the same code on matrices of the same sizes.
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

// whitewash sets every byte of the arena, behind all that it was given before.
func (device *device) whitewash(value byte) error {
	if err := device.host.Fill(device.arena.Address, value, device.arena.Bytes); err != nil {
		return err
	}
	return device.host.Synchronize()
}
