package cpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// Step gives every stream a goroutine. That they end is what Check proved of
// the program: no instruction waits for itself. A fault or the context ends
// each of them before its next instruction, and those that wait at once.
func (machine *machine) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	if len(machine.arenas) != len(machine.program.Devices) {
		return nil, errors.New("the machine is closed")
	}
	begin, board := time.Now(), newBoard(machine)
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		board.fail(ctx.Err())
		close(cancelled)
	})
	workers := make([]*worker, len(machine.order.streams))
	var streams sync.WaitGroup
	for i := range workers {
		workers[i] = newWorker(machine, step, board, i)
		streams.Go(func() { board.stream(workers[i]) })
	}
	streams.Wait()
	if !stop() {
		<-cancelled // nothing of the step is left behind it
	}
	times := &executor.Times{Step: time.Since(begin), Devices: make([]executor.DeviceTimes, len(machine.arenas))}
	for _, worker := range workers {
		worker.add(&times.Devices[worker.device])
	}
	if board.fault != nil && !errors.Is(board.fault, executor.ErrStop) {
		return nil, board.fault
	}
	return times, nil
}

// stream takes the instructions of a stream, one after the other.
func (board *board) stream(worker *worker) {
	for _, index := range worker.order.streams[worker.stream].lines {
		err := worker.instruction(index)
		if err != nil {
			board.fail(err)
			return
		}
	}
}

// at says where an error is of the recipe's or the caller's making.
func (worker *worker) at(index int32, err error) error {
	if value := (*executor.ValueError)(nil); errors.Is(err, executor.ErrStop) || errors.As(err, &value) {
		return err
	}
	return fmt.Errorf("instruction %s: %w", worker.program.Line(index), err)
}
