// Package simulate computes the times of a program: every stream runs its lines in
// order, an instruction starts when its stream is free and what it waits for is
// there, and takes the ticks that the program gives it. Of that come the time of
// a step, how long each device idles, what its arena holds at every moment, and
// which chain of instructions made the step as long as it is.
//
// Times are integers, picoseconds: sums are exact, so that what happens at one
// moment does so whatever it is the sum of, and a step as long as a plan says is
// as long to the last digit.
package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/executor/program"
)

// Result is what a step comes to. Its times are picoseconds, or where the program
// is not [program.Program.Timed] units of a forward.
type Result struct {
	// Makespan is when the last instruction ends.
	Makespan int64
	// Start and End are those of each instruction, as [program.Program.Instrs]
	// has them.
	Start, End []int64
	// Path is a longest chain: each instruction starts as soon as the one before
	// it lets it, the last one ends the step.
	Path []int32
	// Devices are those of the program, in its order.
	Devices []Device
}

// Device is what the step does with one of them.
type Device struct {
	// Busy is how long each of its streams runs something.
	Busy []int64
	// Computing is how long the one of them does that is named "compute".
	Computing int64
	// InFlight is the most micro-batches between the start of their first
	// forward here and the end of their last backward.
	InFlight int
	// Memory is what its arena holds, from each moment on until the next, which is
	// later: the live bytes. A buffer is there from the start of the instruction that writes
	// all of it, or of the send whose message comes to lie in it, to the end of
	// the last that touches it before it is written again; what is there
	// throughout ([program.Class.Throughout]), always.
	Memory []Moment
	// Peak is when the arena holds most, for however short, the first time;
	// PeakAt is the instruction that made it so, [program.None] where nothing but
	// what is there throughout ever is.
	Peak   Moment
	PeakAt int32
}

// Moment is what is live from a time on.
type Moment struct{ Time, Bytes int64 }

// Bubble is the part of the step in which the device is idle.
func (result *Result) Bubble(device int) float64 {
	if result.Makespan == 0 {
		return 0
	}
	return float64(result.Makespan-result.Devices[device].Computing) / float64(result.Makespan)
}

// Shared simulates a program with several devices on one GPU: on says which GPU each
// has, by any numbers. Kernels of two of them alternate there, the one that can begin
// first goes first: a kernel that fills a GPU leaves nothing to another, and of two that
// run at once each takes as much longer. Messages overlap with them, as between GPUs.
func Shared(prog *program.Program, on []int) (*Result, error) {
	if len(on) != len(prog.Devices) {
		return nil, fmt.Errorf("%d devices are said to be on GPUs, the program has %d", len(on), len(prog.Devices))
	}
	return simulate(prog, newTurns(on))
}

// Run simulates a program. It is meant for one that [program.Program.Check] found
// sound, and ends on any other: a program that does not come to its end is a
// *[DeadlockError]. Time and space are linear in its size, but for the logarithm
// of the number of streams.
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

// addable reports that no time of the program is negative and no sum of them
// overflows.
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

// ticks is how long an instruction takes its stream. A program that others wrote
// says nothing of it: the unit of all published schedules, a forward, is one tick
// there, a backward two.
func ticks(prog *program.Program, instr *program.Instr) int64 {
	switch {
	case prog.Timed:
		return instr.Ticks
	case instr.Op == program.Forward:
		return 1
	case instr.Op == program.Backward:
		return 2
	}
	return 0
}

// busy adds up what the streams of every device run.
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
