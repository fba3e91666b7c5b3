package schedule

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// look records what has ended since the last look: on the queues, and of the host's calls.
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

// passed lets the device know of a fence.
func (lane *lane) passed(at moment) {
	if at.line < 0 {
		return
	}
	if index := lane.lines[at.line]; lane.Program.Instrs[index].Op == program.Fence && at.event == lane.events[index].ended {
		lane.device.Driver.Fenced()
	}
}

// answer calls the lane's function, once its queue has come there, on a thread of its own. The
// device's reads and writes of that function run on this thread.
func (lane *lane) answer() error {
	if lane.then == nil {
		return nil
	}
	if !lane.calling {
		if lane.draining && !lane.board.reads(func() bool { return lane.board.nanAfter(lane.thenGiven) }) {
			return nil // the step ends: the function is not called any more
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
		lane.board.post(func() {
			lane.calling = false
			if errors.Is(err, executor.ErrStop) && lane.board.nanAfter(lane.thenGiven) {
				lane.board.fault = err
			}
		})
		return lane.at(lane.thenAt, err)
	default:
		return nil
	}
}

// spins is how often a thread looks again before it sleeps. That takes some milliseconds, about as
// long as a GPU takes from one token to the next.
const spins = 5000

// idle waits until something may have changed, and fails a step in which nothing does. A thread
// that looks again yields to others only if there are too few processors. A goroutine that is bound
// to its thread takes 5 µs to come back, ten times as long as a look.
func (runner *runner) idle() {
	var tick <-chan time.Time // nil for immediate queues, as a call ends before it returns
	if !runner.Immediate {
		runner.idled++
		if runner.idled < spins {
			if len(runner.Devices) >= runtime.GOMAXPROCS(0) {
				runtime.Gosched()
			}
			return
		}
		timer := time.NewTimer(20 * time.Microsecond)
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-runner.device.wake:
	case task := <-runner.device.tasks:
		task()
	case <-tick:
	}
	runner.watch()
}

// watch fails the step if no queue has ended anything for StallLimit.
func (runner *runner) watch() {
	if runner.Immediate {
		return
	}
	runner.board.lock.Lock()
	defer runner.board.lock.Unlock()
	still := time.Since(runner.board.moved)
	if still < runner.StallLimit {
		return
	}
	for _, lane := range runner.board.lanes {
		if lane.calling {
			return // the host's call takes its time
		}
	}
	hang := &executor.HangError{After: still.Round(time.Millisecond), State: strings.TrimSuffix(runner.stallReport(runner.board.lanes), "\n")}
	switch before := (*executor.HangError)(nil); {
	case errors.As(runner.board.fault, &before): // another device's thread reported it
	case runner.board.fault == nil || errors.Is(runner.board.fault, executor.ErrStop):
		runner.board.fault = hang
	default:
		runner.board.fault = fmt.Errorf("%w; then %w", runner.board.fault, hang)
	}
}
