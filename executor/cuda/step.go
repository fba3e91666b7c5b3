//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// Step has every device's thread give its streams to the GPU. That they end is what
// Check proved of the program; what ends them early is a fault or the context,
// after which nothing more is given, and everything that was is waited for.
func (machine *machine) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	if len(machine.devices) == 0 || machine.left {
		return nil, errors.New("the machine is closed")
	}
	if machine.asleep {
		return nil, errAsleep
	}
	board := &board{issued: make([]bool, len(machine.program.Instrs)), came: make([]bool, len(machine.program.Instrs)), moved: time.Now()}
	for _, device := range machine.devices {
		board.wakes = append(board.wakes, device.wake)
	}
	if err := machine.settled(); err != nil {
		return nil, err
	}
	runners := make([]*runner, len(machine.devices))
	for i, device := range machine.devices {
		runners[i] = &runner{machine: machine, device: device, step: step, board: board}
	}
	for i := range machine.order.streams {
		runner := runners[machine.order.streams[i].device]
		lane := newLane(runner, i)
		runner.lanes, board.lanes = append(runner.lanes, lane), append(board.lanes, lane)
	}
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		board.fail(ctx.Err())
		close(cancelled)
	})
	begin := time.Now()
	var threads sync.WaitGroup
	for _, runner := range runners {
		threads.Go(func() {
			if err := runner.device.do(runner.run); err != nil {
				board.fail(err)
			}
		})
	}
	threads.Wait()
	took := time.Since(begin)
	if !stop() {
		<-cancelled // nothing of the step is left behind it
	}
	return machine.times(board, runners, took)
}

// settled waits until every device has what the host wrote: a message of another
// device may come before its own streams begin.
func (machine *machine) settled() error {
	for _, device := range machine.devices {
		if err := device.do(device.host.Synchronize); err != nil {
			return err
		}
	}
	return nil
}

// times are what the events of the step say.
func (machine *machine) times(board *board, runners []*runner, took time.Duration) (*executor.Times, error) {
	if hang := (*HangError)(nil); errors.As(board.fault, &hang) {
		machine.left = true
	}
	if lost := (*LostError)(nil); errors.As(board.fault, &lost) {
		machine.left = true
		return nil, machine.losses(lost, board.lanes)
	}
	if value := (*executor.ValueError)(nil); errors.As(board.fault, &value) {
		return nil, board.value
	}
	if board.fault != nil && !errors.Is(board.fault, executor.ErrStop) {
		return nil, board.fault
	}
	times := &executor.Times{Step: took}
	for _, runner := range runners {
		var of executor.DeviceTimes
		if err := runner.device.do(func() error { return runner.times(&of) }); err != nil {
			return nil, err
		}
		times.Devices = append(times.Devices, of)
	}
	return times, nil
}

// runner is a device in a step, on its thread.
type runner struct {
	*machine
	device *device
	step   *executor.Step
	board  *board
	lanes  []*lane
	// idled is how often in a row there was nothing to do; draining: nothing more is
	// given, nor the host called.
	idled    int
	draining bool
}

// looks is how many lines are given before the GPU is asked what has ended, which
// takes as long as to give it a kernel.
const looks = 8

// run gives the lines of all streams to the GPU, the earliest first that can be,
// until all are or the step ends; then it waits until the GPU has ended them.
func (runner *runner) run() error {
	runner.device.stepping = true
	runner.device.clock.begin(runner.backend.options.Clock, runner.step.Number)
	defer func() { runner.device.stepping = false }()
	for given := 0; runner.board.failed() == nil; {
		lane := runner.next()
		if lane == nil && runner.over() {
			break
		}
		var err error
		given++
		if lane == nil || given%looks == 0 {
			err = runner.look()
		}
		if err == nil && lane != nil {
			runner.idled = 0
			err = lane.issue()
		}
		if err != nil {
			runner.board.fail(runner.device.lost(err))
			break
		}
		if lane == nil {
			runner.idle()
		}
	}
	return runner.drain()
}

// next is the stream whose next line is the earliest of those that can be given.
func (runner *runner) next() (first *lane) {
	for _, lane := range runner.lanes {
		if lane.then == nil && lane.next < len(lane.lines) && (first == nil || lane.lines[lane.next] < first.lines[first.next]) && lane.can() {
			first = lane
		}
	}
	return first
}

// over reports that all lines were given.
func (runner *runner) over() bool {
	for _, lane := range runner.lanes {
		if lane.next < len(lane.lines) {
			return false
		}
	}
	return true
}

// drain waits for everything that was given. Of GPUs that hang or wait for one that is
// lost it does not.
func (runner *runner) drain() error {
	runner.draining = true
	var all []error
	for _, lane := range runner.lanes {
		all = append(all, lane.stream.Record(lane.parked))
		lane.pending = append(lane.pending, moment{event: lane.parked, line: lane.next - 1})
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	for {
		busy := false
		for _, lane := range runner.lanes {
			busy = busy || len(lane.pending) > 0 || lane.calling
		}
		hang, lost := (*HangError)(nil), (*LostError)(nil)
		if fault := runner.board.failed(); !busy || errors.As(fault, &hang) || errors.As(fault, &lost) {
			return nil
		}
		if err := runner.look(); err != nil {
			return err
		}
		runner.idle()
	}
}

// at says where an error is of a kernel's or the caller's making.
func (runner *runner) at(index int32, err error) error {
	if value := (*executor.ValueError)(nil); err == nil || errors.Is(err, executor.ErrStop) || errors.As(err, &value) {
		return err
	}
	return fmt.Errorf("instruction %s: %w", runner.program.Line(index), err)
}
