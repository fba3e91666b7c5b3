package cpu

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// computation is what an instruction does to its device's arena.
type computation struct {
	*device
	instr *program.Instr
	bound bind.Instr
}

// work binds an instruction again in each step: all bound instructions together take more memory
// than a model.
func (machine *machine) work(index int32) (*schedule.Work, error) {
	bound, err := machine.instr(index)
	if err != nil {
		return nil, err
	}
	device := machine.scheduler.DeviceOf(index).Driver.(*device) //nolint:errcheck,forcetypeassert // there are no others
	return schedule.NewWork(&bound, device, &computation{device, &machine.program.Instrs[index], bound}), nil
}

// Kernel implements [schedule.Kernels], as Search and Total do.
func (of *computation) Kernel(run, number int) schedule.Call {
	return func(args *schedule.Args) error {
		return kernel.Run(of.call(&of.bound.Runs[run], &of.bound.Runs[run].Kernels[number], args))
	}
}

func (of *computation) Search(run int) []schedule.Call {
	return []schedule.Call{func(args *schedule.Args) error { return of.finite(&of.bound.Runs[run], of.instr, args.Number) }}
}

// Total adds up in float64, in the order of the parameters. The sum is the same for every
// placement.
func (of *computation) Total(total *bind.Total) schedule.Call {
	return func(*schedule.Args) error {
		sum := 0.
		for i := range total.Count {
			sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(of.arena[total.From+4*i:])))
		}
		binary.LittleEndian.PutUint32(of.arena[total.To:], math.Float32bits(float32(sum)))
		return nil
	}
}

// call returns a kernel with its matrices, valid until the next call.
func (device *device) call(run *bind.Run, code *recipe.Kernel, args *schedule.Args) *kernel.Call {
	call := &kernel.Call{Kernel: code, Past: run.Past, Begins: run.Begins, Step: args.Number, Optimizer: args.Optimizer}
	device.operands = device.operands[:0]
	for i := range code.Operands {
		tensor, area := code.Operands[i].Tensor, run.Area(&code.Operands[i])
		device.operands = append(device.operands, device.matrix(area))
		if len(run.Uses) > 0 && len(run.Uses[tensor]) > 0 {
			if call.Uses == nil {
				call.Uses = make([][]kernel.Matrix, len(code.Operands))
			}
			call.Uses[i] = device.uses(area, run.Offsets[tensor], run.Uses[tensor])
		}
	}
	call.Operands = device.operands
	return call
}

// uses returns the same area of every use's gradient.
func (device *device) uses(area bind.Area, own int64, offsets []int64) (all []kernel.Matrix) {
	for _, offset := range offsets {
		use := area
		use.Offset += offset - own
		all = append(all, device.matrix(use))
	}
	return all
}

// matrix returns an area of the device's arena, without capacity after it.
func (device *device) matrix(area bind.Area) kernel.Matrix {
	matrix := kernel.Matrix{DType: area.DType, Rows: area.Rows, Columns: area.Columns, Stride: area.Stride}
	if area.Rows > 0 {
		end := area.Offset + ((area.Rows-1)*area.Stride+area.Columns)*(area.DType.Bits()/8)
		matrix.Data = device.arena[area.Offset:end:end]
	}
	return matrix
}
