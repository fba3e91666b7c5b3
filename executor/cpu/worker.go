package cpu

import (
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/program"
)

// worker is a stream in a step.
type worker struct {
	*machine
	step           *executor.Step
	board          *board
	stream, device int
	arena          []byte // the device's own
	// took is the time of instructions by op, waited that of waits; computes:
	// the stream runs kernels, and its waits are the device's.
	took     [program.Unload + 1]time.Duration
	waited   time.Duration
	computes bool
	// What a kernel is given: kept, so that a step makes no garbage by the kernel.
	operands []kernel.Matrix
}

func newWorker(machine *machine, step *executor.Step, board *board, stream int) *worker {
	device := machine.order.streams[stream].device
	return &worker{machine: machine, step: step, board: board, stream: stream, device: device, arena: machine.arenas[device]}
}

// instruction waits for what an instruction waits for, and carries it out.
func (worker *worker) instruction(index int32) error {
	instr := &worker.program.Instrs[index]
	if err := worker.await(instr); err != nil {
		return err
	}
	begin := time.Now()
	err := worker.carry(index, instr)
	worker.took[instr.Op] += time.Since(begin)
	if err != nil {
		return worker.at(index, err)
	}
	worker.board.post(func() { worker.end(instr) })
	return nil
}

func (worker *worker) carry(index int32, instr *program.Instr) error {
	switch instr.Op {
	case program.Forward, program.Backward, program.Recompute, program.Decode, program.Step:
		worker.computes = true
		return worker.compute(index, instr)
	case program.Send:
		worker.send(index, instr)
	case program.Fence:
		if worker.step.Fence != nil {
			return worker.step.Fence(index)
		}
	case program.Load, program.Zero, program.Unload: // no part of a step
	case program.Recv, program.Free: // the board knows
	}
	return nil
}

// add gives a device the times of one of its streams.
func (worker *worker) add(times *executor.DeviceTimes) {
	took := &worker.took
	times.Forward += took[program.Forward]
	times.Backward += took[program.Backward] + took[program.Recompute]
	times.Decode += took[program.Decode]
	times.Update += took[program.Step]
	if worker.computes {
		times.Wait += worker.waited
	}
}
