//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

// look sees what has ended since it looked last: on the GPU, and of what the host
// does in between.
func (runner *runner) look() error {
	select {
	case task := <-runner.device.tasks: // of a callback
		task()
	default:
	}
	for _, lane := range runner.lanes {
		for len(lane.pending) > 0 {
			ended, err := lane.pending[0].event.Ended()
			if err != nil {
				return err
			}
			if !ended {
				break
			}
			at := lane.pending[0]
			lane.passed(at)
			lane.pending = lane.pending[1:]
			lane.board.post(func() { lane.ended = at.line + 1 })
			if err := lane.infinite(&at); err != nil && !lane.draining {
				return err
			}
		}
		if err := lane.answer(); err != nil {
			return err
		}
	}
	return nil
}

// passed has what the GPU holds read behind a fence.
func (lane *lane) passed(at moment) {
	if at.line < 0 {
		return
	}
	if index := lane.lines[at.line]; lane.program.Instrs[index].Op == program.Fence && at.event == lane.events[index].ended {
		lane.device.gpu.gauge.fence()
	}
}

// answer calls what the stream is parked for, once it has come there, on a thread
// of its own: what that reads and writes is done by this one.
func (lane *lane) answer() error {
	if lane.then == nil {
		return nil
	}
	if !lane.calling {
		if lane.draining {
			return nil // the step ends: it is not called any more
		}
		ended, err := lane.parked.Ended()
		if !ended || err != nil {
			return err
		}
		lane.board.post(func() { lane.calling = true })
		then, wake := lane.then, lane.device.wake
		go func() {
			lane.called <- then()
			select {
			case wake <- struct{}{}:
			default:
			}
		}()
		return nil
	}
	select {
	case err := <-lane.called:
		lane.then = nil
		lane.board.post(func() { lane.calling = false })
		return lane.at(lane.lines[lane.next], err)
	default:
		return nil
	}
}

// spins is how often a thread looks again before it sleeps: some milliseconds, about
// as long as a GPU takes from a token to the next.
const spins = 5000

// idle waits until something may have changed, and gives a step up in which
// nothing does. A thread that looks again yields to others only where there are not
// processors enough: a goroutine that is bound to its thread takes 5 µs to come
// back, ten times what a look takes.
func (runner *runner) idle() {
	runner.idled++
	if runner.idled < spins {
		if len(runner.devices) >= runtime.GOMAXPROCS(0) {
			runtime.Gosched()
		}
		return
	}
	timer := time.NewTimer(20 * time.Microsecond)
	defer timer.Stop()
	select {
	case <-runner.device.wake:
	case task := <-runner.device.tasks:
		task()
	case <-timer.C:
	}
	runner.watch()
}

// watch looks when anything ended last, anywhere.
func (runner *runner) watch() {
	runner.board.lock.Lock()
	defer runner.board.lock.Unlock()
	still := time.Since(runner.board.moved)
	if still < runner.backend.options.Patience {
		return
	}
	for _, lane := range runner.board.lanes {
		if lane.calling {
			return // the host takes its time
		}
	}
	hang := &HangError{still.Round(time.Millisecond), strings.TrimSuffix(runner.stand(runner.board.lanes), "\n")}
	switch before := (*HangError)(nil); {
	case errors.As(runner.board.fault, &before): // another device's thread told it
	case runner.board.fault == nil || errors.Is(runner.board.fault, executor.ErrStop):
		runner.board.fault = hang
	default:
		runner.board.fault = fmt.Errorf("%w; then %w", runner.board.fault, hang)
	}
}

// finish waits until a device has done what its streams were given outside of a
// step, with the same patience.
func (machine *machine) finish(device *device, what string) error {
	for i, stream := range device.streams {
		if err := stream.Record(device.parked[i]); err != nil {
			return err
		}
	}
	begin := time.Now()
	for _, event := range device.parked {
		for {
			ended, err := event.Ended()
			if err != nil {
				return err
			}
			if ended {
				break
			}
			if took := time.Since(begin); took > machine.backend.options.Patience {
				machine.left = true
				return &HangError{took.Round(time.Millisecond), what}
			}
			runtime.Gosched()
		}
	}
	return nil
}

// times adds up what the events say of the device's instructions. What is not
// computing between the first and the last of a stream is waiting.
func (runner *runner) times(of *executor.DeviceTimes) error {
	for _, lane := range runner.lanes {
		if err := lane.times(of); err != nil {
			return err
		}
	}
	return runner.device.clock.tell(runner.device.plan.ID)
}

func (lane *lane) times(of *executor.DeviceTimes) error {
	var first, last *driver.Event
	var busy time.Duration
	for _, index := range lane.lines[:lane.next] {
		if !lane.computes(index) {
			continue
		}
		began, ended := lane.events[index].began, lane.events[index].ended
		if began == nil {
			began = last
		}
		took, err := ended.Since(began)
		if err != nil {
			return err
		}
		if first == nil {
			first = began
		}
		last, busy = ended, busy+took
		switch lane.program.Instrs[index].Op { //nolint:exhaustive // the others compute nothing
		case program.Forward:
			of.Forward += took
		case program.Backward, program.Recompute:
			of.Backward += took
		case program.Decode:
			of.Decode += took
		case program.Step:
			of.Update += took
		}
	}
	if first == nil {
		return nil
	}
	whole, err := last.Since(first)
	of.Wait += max(whole-busy, 0)
	return err
}
