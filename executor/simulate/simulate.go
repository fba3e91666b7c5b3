// Package simulate computes the times of a program. Every stream runs its lines in order. An
// instruction starts when its stream is free and everything that it waits for is there, and takes
// the ticks that the program gives it. The results are the time of a step, the idle time of each
// device, and the memory of its arena at every moment. Another result is the chain of instructions
// that makes the step as long as it is.
//
// Times are integers, in picoseconds, so that sums are exact. Events at one moment have equal
// times, and a step is exactly as long as the plan says.
package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/executor/program"
)

// Result is the simulated step. Times are in picoseconds, or in units of a forward if the program
// is not [program.Program.Timed].
type Result struct {
	// Makespan is when the last instruction ends.
	Makespan int64
	// Start and End are by instruction, as in [program.Program.Instrs].
	Start, End []int64
	// Path is a longest chain: each instruction starts as soon as the one before it lets it, and
	// the last one ends the step.
	Path []int32
	// Devices are those of the program, in its order.
	Devices []Device
}

// Device is what one device does in the step.
type Device struct {
	// Busy is how long each of its streams runs something.
	Busy []int64
	// Computing is how long the stream with the name "compute" runs something.
	Computing int64
	// InFlight is the most micro-batches between the start of their first
	// forward here and the end of their last backward.
	InFlight int
	// Memory is the live bytes of its arena, each from its moment until the next, which is later. A
	// buffer is live from the start of the instruction that writes all of it, or of the send of the
	// message in it. Its life ends with the last instruction that touches it before it is written
	// again. Buffers that are there throughout ([program.Class.Throughout]) are always live.
	Memory []Moment
	// Peak is the first moment with the most live bytes, however short. PeakAt is the instruction
	// that caused it. It is [program.None] if only buffers that are there throughout are live.
	Peak   Moment
	PeakAt int32
}

// Moment is the live bytes from a time on.
type Moment struct{ Time, Bytes int64 }

// Bubble returns the fraction of the step in which the device is idle.
func (result *Result) Bubble(device int) float64 {
	if result.Makespan == 0 {
		return 0
	}
	return float64(result.Makespan-result.Devices[device].Computing) / float64(result.Makespan)
}

// Shared simulates a program with several devices on one GPU; on has the GPU of each device, by any
// numbers. Kernels of two devices alternate on a GPU, and the one that can begin first goes first.
// A kernel that fills a GPU leaves nothing to another: two at once would each take longer by as
// much. Messages overlap with kernels, as between GPUs.
func Shared(prog *program.Program, on []int) (*Result, error) {
	if len(on) != len(prog.Devices) {
		return nil, fmt.Errorf("%d devices are said to be on GPUs, the program has %d", len(on), len(prog.Devices))
	}
	return simulate(prog, newTurns(on))
}

// Run simulates a program. It is meant for one that [program.Program.Check] found valid, and ends
// on any other. If the program does not run to its end, the error is a *[DeadlockError]. Time and
// space are linear in its size, except for the logarithm of the number of streams.
func Run(prog *program.Program) (*Result, error) { return simulate(prog, nil) }

func simulate(prog *program.Program, turns *turns) (*Result, error) {
	if !addable(prog) {
		return nil, errors.New("the times of the program are negative, or add up to more than 106 days (2⁶³ picoseconds)")
	}
	sim := newSimulation(prog)
	sim.turns = turns
	sim.run()
	if len(sim.order) < len(prog.Instrs) {
		return nil, &DeadlockError{sim.blocked()}
	}
	result := &Result{Start: sim.start, End: sim.end, Devices: make([]Device, len(prog.Devices))}
	result.Makespan, result.Path = sim.makespan(), sim.path()
	for i := range result.Devices {
		device := &prog.Devices[i]
		result.Devices[i].Busy = make([]int64, len(device.Streams))
		result.Devices[i].InFlight = inFlight(prog.Instrs[device.First:device.End])
	}
	sim.busy(result.Devices)
	sim.memory(result.Devices)
	return result, nil
}

// addable reports whether no time of the program is negative and no sum of them overflows.
func addable(prog *program.Program) bool {
	total := uint64(0)
	add := func(ticks int64) bool {
		var carry uint64
		total, carry = bits.Add64(total, uint64(ticks), 0) // a negative one is beyond the largest
		return carry == 0 && total <= math.MaxInt64
	}
	for i := range prog.Instrs {
		instr := &prog.Instrs[i]
		if !add(ticks(prog, instr)) || instr.Channel >= 0 && !add(prog.Channels[instr.Channel].Latency) {
			return false
		}
	}
	return true
}

// ticks returns how long an instruction occupies its stream. Programs of other authors have no
// times. There a forward, the unit of all published schedules, and each half of a backward take one
// tick, and a backward two.
func ticks(prog *program.Program, instr *program.Instr) int64 {
	switch {
	case prog.Timed:
		return instr.Ticks
	case instr.Op == program.Forward, instr.Op == program.BackwardInput, instr.Op == program.BackwardWeight:
		return 1
	case instr.Op == program.Backward:
		return 2
	}
	return 0
}

// busy adds up the times of every device's streams.
func (sim *simulation) busy(devices []Device) {
	for i := range sim.prog.Instrs {
		instr := &sim.prog.Instrs[i]
		devices[instr.Device].Busy[instr.Stream] += ticks(sim.prog, instr)
	}
	for device := range devices {
		for stream, name := range sim.prog.Devices[device].Streams {
			if name == "compute" {
				devices[device].Computing = devices[device].Busy[stream]
			}
		}
	}
}
