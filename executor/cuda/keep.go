//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// most is how many kernels are kept, at half a kilobyte each: more than a step of any
// model in a few micro-batches has. What is behind them is bound when its turn comes.
const most = 1 << 16

// keep prepares what instructions compute. Those of one unit that access the same
// buffers differ in how many tokens came before them at most: a generation of a
// thousand tokens keeps no more than one of a few.
func (machine *machine) keep() error {
	machine.kept = make([]*prepared, len(machine.program.Instrs))
	known := make(map[string]*prepared)
	var key []byte
	kernels := 0
	for i := range machine.program.Instrs {
		if !machine.computes(int32(i)) {
			continue
		}
		key = machine.likeness(key[:0], int32(i))
		one := known[string(key)]
		if one == nil && kernels < most {
			err := machine.deviceOf(int32(i)).do(func() (err error) {
				one, err = machine.prepare(int32(i))
				return err
			})
			if err != nil {
				return fmt.Errorf("instruction %s: %w", machine.program.Line(int32(i)), err)
			}
			known[string(key)] = one
			for run := range one.runs {
				kernels += len(one.runs[run].calls)
			}
		}
		machine.kept[i] = one
	}
	return nil
}

// likeness is equal for instructions that do the same to the same buffers.
func (machine *machine) likeness(key []byte, index int32) []byte {
	instr := &machine.program.Instrs[index]
	for _, part := range []int32{machine.order.of[index], int32(instr.Op), instr.Routine, instr.MicroBatch} {
		key = binary.LittleEndian.AppendUint32(key, uint32(part))
	}
	for _, access := range machine.program.Accesses[instr.FirstAccess:instr.EndAccess] {
		key = append(binary.LittleEndian.AppendUint32(key, uint32(access.Buffer)), byte(access.Mode))
	}
	return key
}

// prepare binds an instruction, finds the addresses of all that it touches, and
// prepares its kernels: modules are loaded, products find their algorithms, and
// arguments are packed. It is for the device's thread.
func (machine *machine) prepare(index int32) (*prepared, error) {
	bound, err := machine.backend.instr(machine.bound, index)
	if err != nil {
		return nil, err
	}
	device := machine.deviceOf(index)
	made := &prepared{norms: bound.Norms, total: bound.Total, tails: bound.Tails, runs: make([]pass, len(bound.Runs))}
	for i := range bound.Runs {
		run := &bound.Runs[i]
		pass := pass{before: run.Before, after: run.After, calls: make([]*kernel.Call, len(run.Kernels)), launches: make([]kernel.Launch, len(run.Kernels))}
		for j := range pass.calls {
			pass.calls[j] = device.call(run, j, machine.trains)
			if pass.launches[j], err = kernel.Prepare(machine.backend.kernels, pass.calls[j]); err != nil {
				return nil, err
			}
			if machine.backend.options.Clock != nil {
				pass.launches[j] = device.clocked(pass.calls[j].Kernel, pass.launches[j])
			}
		}
		var found []finding
		if pass.finite, found, err = device.finite(machine.bound, run); err != nil {
			return nil, err
		}
		made.runs[i], made.found = pass, append(made.found, found...)
	}
	return made, nil
}

// call is a kernel with its matrices.
func (device *device) call(run *bind.Run, number int, trains bool) *kernel.Call {
	code := &run.Kernels[number]
	call := &kernel.Call{
		Kernel: code, Trains: trains, Begins: run.Begins, Kernels: device.kernels, Workspace: device.workspace,
		Operands: make([]kernel.Matrix, len(code.Operands)),
	}
	for i := range code.Operands {
		tensor, area := code.Operands[i].Tensor, run.Area(&code.Operands[i])
		call.Operands[i] = device.matrix(area)
		if len(run.Uses) == 0 || len(run.Uses[tensor]) == 0 {
			continue
		}
		if call.Uses == nil {
			call.Uses = make([][]kernel.Matrix, len(code.Operands))
		}
		for _, offset := range run.Uses[tensor] {
			use := area
			use.Offset += offset - run.Offsets[tensor]
			call.Uses[i] = append(call.Uses[i], device.matrix(use))
		}
	}
	return call
}
