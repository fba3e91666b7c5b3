package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// Scheduler runs the steps of a program on devices.
type Scheduler struct {
	Order
	Options
	Program *program.Program
	Devices []*Device // as in Program.Devices
	Links   []*Link   // in the order of the first sends

	events []marks // by instruction
	links  map[linkKey]*Link
}

// Options are a backend's settings for steps.
type Options struct {
	// Work returns what an instruction computes, and is called on its device's thread. Past returns
	// how many tokens came before it.
	Work func(index int32) (*Work, error)
	Past func(index int32) int64
	// Chain returns the chain that begins at an instruction, or nil; nil: there are none.
	Chain func(index int32) *Chain
	// StallLimit is how long a step may go without any instruction ending before it fails
	// with an [*executor.HangError].
	StallLimit time.Duration
	// Immediate queues end every call before it returns. They are not polled, and their steps do
	// not hang.
	Immediate bool
	// Fault is provoked; nil: none.
	Fault *Fault
	// Lost returns the lost GPUs; nil if none can be lost.
	Lost func() []Place
}

// Place is a GPU with its devices.
type Place struct {
	Name    string
	Devices []*Device
}

// New returns a scheduler without devices.
func New(of *program.Program, options Options) *Scheduler {
	return &Scheduler{Order: orderOf(of), Options: options, Program: of}
}

// DeviceOf returns the device of an instruction.
func (of *Scheduler) DeviceOf(index int32) *Device {
	return of.Devices[of.Streams[of.Of[index]].Device]
}

// Step has every device's thread give its lines to the queues. Check has proved that all of them
// end. A fault or the context may end the step early. Then nothing more is given, and the step
// waits for everything that was.
func (of *Scheduler) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	board := newBoard(of)
	runners := make([]*runner, len(of.Devices))
	for i, device := range of.Devices {
		runners[i] = &runner{Scheduler: of, device: device, step: step, board: board}
	}
	for i := range of.Streams {
		runner := runners[of.Streams[i].Device]
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
			if err := runner.device.Do(runner.run); err != nil {
				board.fail(err)
			}
		})
	}
	threads.Wait()
	took := time.Since(begin)
	if !stop() {
		<-cancelled // nothing of the step remains after it
	}
	return of.times(board, runners, took)
}

// runner is a device in a step. It runs on the device's thread.
type runner struct {
	*Scheduler
	device *Device
	step   *executor.Step
	board  *board
	lanes  []*lane
	// idled is how often in a row there was nothing to do. draining: nothing more is given, and the
	// host's functions are not called.
	idled    int
	draining bool
}

// looks is how many lines are given before queues are asked what has ended. Asking takes as long as
// giving a kernel.
const looks = 8

// run gives the lines of all lanes to their queues, always the earliest that is possible, until all
// are given or the step ends. Then it waits until the queues have ended them.
func (runner *runner) run() error {
	runner.device.stepping = true
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
			runner.board.fail(runner.device.Driver.Lost(err))
			break
		}
		if lane == nil {
			runner.idle()
		}
	}
	return runner.drain()
}

// next returns the lane with the earliest next line of those that can be given, or nil.
func (runner *runner) next() (first *lane) {
	for _, lane := range runner.lanes {
		if lane.next < len(lane.lines) && lane.free() && (first == nil || lane.lines[lane.next] < first.lines[first.next]) && lane.can() {
			first = lane
		}
	}
	return first
}

// over reports whether all lines were given, and the host's calls have ended.
func (runner *runner) over() bool {
	for _, lane := range runner.lanes {
		if lane.next < len(lane.lines) || lane.then != nil {
			return false
		}
	}
	return true
}

// drain waits for everything that was given, unless queues hang or wait for a lost GPU.
func (runner *runner) drain() error {
	runner.draining = true
	var all []error
	for _, lane := range runner.lanes {
		all = append(all, lane.queue.Record(lane.parked))
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
		hang, lost := (*executor.HangError)(nil), (*executor.LostError)(nil)
		if fault := runner.board.failed(); !busy || errors.As(fault, &hang) || errors.As(fault, &lost) {
			return nil
		}
		if err := runner.look(); err != nil {
			return err
		}
		runner.idle()
	}
}

// at adds the line to an error of a kernel or the caller.
func (of *Scheduler) at(index int32, err error) error {
	if value := (*executor.ValueError)(nil); err == nil || errors.Is(err, executor.ErrStop) || errors.As(err, &value) {
		return err
	}
	return fmt.Errorf("instruction %s: %w", of.Program.Line(index), err)
}
