package schedule

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// lane is a stream in a step: how many of its lines its queue has got, and how many have ended.
type lane struct {
	*runner
	queue  Queue
	parked Event
	lines  []int32
	next   int
	// midway: a part of the next line was given. work is how far a computation was given.
	midway bool
	work   progress
	args   Args
	// computed is the work of the line that was given last.
	computed *Work
	// then is the host's call for when the queue has come to parked; calling: the call runs.
	// Until it has ended nothing that may call the host is given to the queue. thenAt is the call's
	// instruction, thenGiven how many lines of all lanes were given before it.
	then      func() error
	thenAt    int32
	thenGiven int
	calling   bool
	called    chan error
	// pending are moments that the queue has not reached, in order. ended is how many lines are
	// known to have ended. Both are under the board's lock.
	pending []moment
	ended   int
	inner   map[int32]bool // lines of chains without an event of their end
}

// moment is an event after a line.
type moment struct {
	event Event
	line  int   // index in the lane's lines
	work  *Work // the line's work, nil if it does not compute
	given int   // how many lines of all lanes were given before it
}

func newLane(runner *runner, number int) *lane {
	stream := &runner.Streams[number]
	queue := runner.device.queues[stream.Number]
	return &lane{
		runner: runner, queue: queue, args: Args{Queue: queue, Number: runner.step.Number, Optimizer: &runner.step.Optimizer},
		parked: runner.device.parked[stream.Number], lines: stream.Lines, called: make(chan error, 1),
	}
}

// can reports whether the next line can be given: everything that it waits for was given.
func (lane *lane) can() bool {
	index := lane.lines[lane.next]
	return lane.board.reads(func() bool {
		for _, wait := range lane.waits(index) {
			if !lane.board.issued[wait.Instr] {
				return false
			}
		}
		return lane.ready(&lane.Program.Instrs[index])
	})
}

// issue gives the next line to the queue, up to a call of the host in it.
func (lane *lane) issue() error {
	index := lane.lines[lane.next]
	if !lane.midway {
		for _, wait := range lane.waits(index) {
			if lane.Of[wait.Instr] == lane.Of[index] {
				continue // the stream's own order
			}
			if err := lane.queue.Await(lane.events[wait.Instr].ended); err != nil {
				return err
			}
		}
	}
	if chain := lane.chain(index); chain != nil {
		return lane.issueChain(chain)
	}
	whole, err := lane.carry(index, &lane.Program.Instrs[index])
	if err != nil {
		return lane.at(index, err)
	}
	if lane.midway = !whole; lane.midway {
		return nil
	}
	behind := moment{event: lane.events[index].ended, line: lane.next, work: lane.computed}
	if lane.computed = nil; behind.event != nil {
		if err := lane.queue.Record(behind.event); err != nil {
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

// carry gives an instruction to the queue. whole: all of it was given.
func (lane *lane) carry(index int32, instr *program.Instr) (whole bool, err error) {
	switch instr.Op {
	case program.Forward, program.Backward, program.BackwardInput, program.BackwardWeight, program.Recompute, program.Decode, program.Step: // as [Computes] says
		return lane.compute(index)
	case program.Send:
		return true, lane.send(index, instr)
	case program.Recv:
		return lane.receive(index, instr)
	case program.Store, program.Fetch:
		return true, lane.move(instr)
	case program.Fence:
		return lane.fence(index)
	case program.Load, program.Zero, program.Unload: // no part of a step
	case program.Free: // its event says it
	}
	return true, nil
}

// park has the host call a function when the queue has come here.
func (lane *lane) park(then func() error) error {
	lane.then, lane.thenAt = then, lane.lines[lane.next]
	lane.board.reads(func() bool { lane.thenGiven = lane.board.given; return true })
	return lane.queue.Record(lane.parked)
}

// fence has the host called. If it needs no more than some bytes, they are copied, and the queue
// continues meanwhile.
func (lane *lane) fence(index int32) (whole bool, err error) {
	if lane.midway {
		return true, nil
	}
	if lane.step.Copies != nil {
		if offset, bytes := lane.step.Copies(index); bytes > 0 {
			data, err := lane.device.keep(bytes)
			if err == nil {
				data, err = lane.device.Driver.Carry(lane.queue, data, lane.device.Driver.Address(offset))
			}
			if err != nil {
				return false, err
			}
			return !lane.Immediate, lane.park(func() error { return lane.step.Copied(index, data) })
		}
	}
	if lane.step.Fence == nil {
		return true, nil
	}
	return false, lane.park(func() error { return lane.step.Fence(index) })
}

// free reports whether the next line may be given: the host's call has ended, or it is that of a
// fence, and the line has none.
func (lane *lane) free() bool {
	if lane.then == nil {
		return true
	}
	return !lane.midway && len(lane.step.Taps) == 0 && lane.Program.Instrs[lane.lines[lane.next]].Op == program.Decode
}

// infinite looks for NaN and infinities in the results of an instruction that has ended. If several
// devices find one, the step reports the one whose line was given first: lines that depend on it
// were given later.
func (lane *lane) infinite(at *moment) error {
	if at.work == nil || at.work.Ended == nil {
		return nil
	}
	value := at.work.Ended()
	if value == nil {
		return nil
	}
	instr := &lane.Program.Instrs[lane.lines[at.line]]
	first := &executor.ValueError{Unit: value.Unit, Tensor: value.Tensor, Value: value.Value, Op: instr.Op, MicroBatch: instr.MicroBatch, Step: lane.step.Number}
	lane.board.post(func() {
		if lane.board.fault == nil {
			lane.board.fault = first
		}
		if lane.board.value == nil || at.given < lane.board.valueGiven {
			lane.board.value, lane.board.valueGiven = first, at.given
		}
	})
	return first
}
