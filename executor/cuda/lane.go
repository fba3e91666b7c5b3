//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/program"
)

// lane is a stream in a step: how far it was given to the GPU, and how far that is.
type lane struct {
	*runner
	stream *driver.Stream
	parked *driver.Event
	lines  []int32
	next   int
	// midway: of the next line a part was given, work says which of a computation.
	midway bool
	work   work
	// computed is what the line that was given last computes.
	computed *prepared
	// then is what the host does when the stream has come to parked; calling: it
	// does. Nothing is given to the stream before it has.
	then    func() error
	calling bool
	called  chan error
	// pending are moments that the GPU has not come to, in their order, ended is how
	// many lines it has ended as far as that is known: under the board's lock.
	pending []moment
	ended   int
	// of is what kernels are given of the step.
	of kernel.Step
}

// moment is an event behind a line.
type moment struct {
	event *driver.Event
	line  int       // of the lane's
	made  *prepared // what the line computes, nil where it does not
	given int       // lines of all lanes were before it
}

func newLane(runner *runner, number int) *lane {
	stream := &runner.order.streams[number]
	into := runner.device.streams[stream.number]
	return &lane{
		runner: runner, stream: into, of: kernel.Step{Stream: into, Number: runner.step.Number, Optimizer: &runner.step.Optimizer}, parked: runner.device.parked[stream.number],
		lines: stream.lines, called: make(chan error, 1),
	}
}

// can reports that the next line can be given: whatever it waits for was.
func (lane *lane) can() bool {
	instr := &lane.program.Instrs[lane.lines[lane.next]]
	return lane.board.reads(func() bool {
		for _, wait := range lane.program.Waits[instr.FirstWait:instr.EndWait] {
			if !lane.board.issued[wait.Instr] {
				return false
			}
		}
		return lane.ready(instr)
	})
}

// issue gives the next line to the GPU, or as much of it as comes before the host
// has its turn.
func (lane *lane) issue() error {
	index := lane.lines[lane.next]
	instr := &lane.program.Instrs[index]
	if !lane.midway {
		for _, wait := range lane.program.Waits[instr.FirstWait:instr.EndWait] {
			if lane.order.of[wait.Instr] == lane.order.of[index] {
				continue // the stream's own order
			}
			if err := lane.stream.Await(lane.events[wait.Instr].ended); err != nil {
				return err
			}
		}
	}
	whole, err := lane.carry(index, instr)
	if err != nil {
		return lane.at(index, err)
	}
	if lane.midway = !whole; lane.midway {
		return nil
	}
	behind := moment{event: lane.events[index].ended, line: lane.next, made: lane.computed}
	if lane.computed = nil; behind.event != nil {
		if err := lane.stream.Record(behind.event); err != nil {
			return err
		}
	}
	lane.board.post(func() {
		behind.given = lane.board.given
		lane.board.given++
		lane.next++
		lane.board.issued[index] = true
	})
	if behind.event != nil {
		lane.pending = append(lane.pending, behind)
	}
	return nil
}

// carry gives an instruction; whole: to its end.
func (lane *lane) carry(index int32, instr *program.Instr) (whole bool, err error) {
	switch instr.Op {
	case program.Forward, program.Backward, program.Recompute, program.Decode, program.Step: // as computes says
		return lane.compute(index)
	case program.Send:
		return true, lane.send(index, instr)
	case program.Recv:
		return lane.receive(index, instr)
	case program.Fence:
		if lane.step.Fence == nil || lane.midway {
			return true, nil
		}
		return false, lane.park(func() error { return lane.step.Fence(index) })
	case program.Load, program.Zero, program.Unload: // no part of a step
	case program.Free: // its event says it
	}
	return true, nil
}

// park has the host do something when the stream has come here.
func (lane *lane) park(then func() error) error {
	lane.then = then
	return lane.stream.Record(lane.parked)
}
