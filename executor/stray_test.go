package executor_test

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
)

// straying is a backend that writes eight bytes which no buffer has.
type straying struct {
	executor.Backend
	device int
	offset int64
}

func (straying *straying) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine, err := straying.Backend.Open(ctx, bound)
	if err == nil {
		err = machine.Write(straying.device, straying.offset, make([]byte, 8))
	}
	return machine, err
}

// TestStray: bytes that are written between buffers are counted, on the device
// on which they are.
func TestStray(t *testing.T) {
	job := jobOf(t, "gpt2", training, 2)
	backend := &straying{Backend: cpu.New(), device: 1}
	backend.offset = hole(t, job, backend.device)
	result, err := executor.Run(t.Context(), backend, job, &executor.Settings{Steps: 1, Optimizer: adamW, Weights: weights.Random(job.Graph, 11)})
	if err != nil {
		t.Fatal(err)
	}
	if result.Devices[0].Stray != 0 || result.Devices[1].Stray != 8 {
		t.Errorf("%d and %d bytes, want 0 and 8", result.Devices[0].Stray, result.Devices[1].Stray)
	}
}

// hole is where eight bytes lie in no buffer of a device.
func hole(t *testing.T, job *executor.Job, device int) int64 {
	t.Helper()
	const step = 8
	taken := make([]bool, job.Program.Devices[device].Arena/step)
	for i := range job.Program.Buffers {
		buffer := &job.Program.Buffers[i]
		for at := buffer.Offset / step; int(buffer.Device) == device && at*step < buffer.Offset+buffer.Bytes; at++ {
			taken[at] = true
		}
	}
	for at, is := range taken {
		if !is {
			return int64(at) * step
		}
	}
	t.Fatal("no room is between the buffers")
	return 0
}
