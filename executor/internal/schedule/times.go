package schedule

import (
	"errors"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// times returns the times of the step's events, or why it ended early.
func (of *Scheduler) times(board *board, runners []*runner, took time.Duration) (*executor.Times, error) {
	lost, value := (*executor.LostError)(nil), (*executor.ValueError)(nil)
	switch {
	case errors.As(board.fault, &lost):
		return nil, of.losses(lost, board.lanes)
	case errors.As(board.fault, &value) && board.value != nil:
		return nil, board.value
	case board.fault != nil && !errors.Is(board.fault, executor.ErrStop):
		return nil, board.fault
	}
	times := &executor.Times{Step: took, Devices: make([]executor.DeviceTimes, len(runners))}
	for i, runner := range runners {
		err := runner.device.Do(func() error {
			for _, lane := range runner.lanes {
				if err := lane.times(&times.Devices[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// times adds up the times of the lane's instructions. Time without computing, between the first and
// the last, is waiting.
func (lane *lane) times(of *executor.DeviceTimes) error {
	var first, last, head Event // head: where a chain began
	var busy time.Duration
	for _, index := range lane.lines[:lane.next] {
		op := lane.Program.Instrs[index].Op
		if !Computes(op) {
			continue
		}
		began, ended := lane.events[index].began, lane.events[index].ended
		if head != nil {
			began = head
		}
		if began == nil {
			began = last
		}
		if head = nil; lane.inner[index] {
			head = began
			continue
		}
		took, err := ended.Since(began)
		if err != nil {
			return err
		}
		if first == nil {
			first = began
		}
		last, busy = ended, busy+took
		switch op { //nolint:exhaustive // the others compute nothing
		case program.Forward:
			of.Forward += took
		case program.Backward, program.BackwardInput, program.BackwardWeight, program.Recompute:
			of.Backward += took
			if op == program.BackwardWeight {
				of.Weights += took
			}
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
