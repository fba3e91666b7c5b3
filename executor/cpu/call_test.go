package cpu

import (
	"testing"
	"unsafe"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// No kernel is given a byte of another device's arena, nor one behind the
// values that it may touch: there is no way to reach any.
func TestKernelsSeeTheirDevice(t *testing.T) {
	wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 4, MicroBatches: 2, Seq: 8, Precision: costmodel.BF16Mixed}
	machine, bound := loaded(t, compiled(t, "llama-tied", wanted, 3, 1))
	address := func(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
	matrices, tied := 0, 0
	look := func(device *device, matrix *kernel.Matrix) {
		matrices++
		begin, end := address(matrix.Data), address(matrix.Data)+uintptr(cap(matrix.Data))
		if begin < address(device.arena) || end > address(device.arena)+uintptr(len(device.arena)) {
			t.Errorf("a matrix of device %d lies in no arena of its", device.number)
		}
		if want := ((matrix.Rows-1)*matrix.Stride + matrix.Columns) * matrix.DType.Bits() / 8; int64(cap(matrix.Data)) != want {
			t.Errorf("a matrix of %d × %d has %d bytes, want %d", matrix.Rows, matrix.Columns, cap(matrix.Data), want)
		}
	}
	for index := range int32(len(bound.Program.Instrs)) {
		instr, err := bound.Instr(index)
		if err != nil {
			t.Fatal(err)
		}
		device := machine.scheduler.DeviceOf(index).Driver.(*device) //nolint:forcetypeassert,errcheck // there are no others
		for i := range instr.Runs {
			for j := range instr.Runs[i].Kernels {
				call := device.call(&instr.Runs[i], &instr.Runs[i].Kernels[j], &schedule.Args{})
				for k := range call.Operands {
					look(device, &call.Operands[k])
				}
				for _, uses := range call.Uses {
					for k := range uses {
						tied++
						look(device, &uses[k])
					}
				}
			}
		}
	}
	if matrices == 0 || tied == 0 {
		t.Errorf("%d matrices were looked at, %d of tied gradients", matrices, tied)
	}
}
