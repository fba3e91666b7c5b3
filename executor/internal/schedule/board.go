package schedule

import (
	"errors"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// board is what the devices' threads know of each other in a step: which instructions the queues
// have got. A queue can wait for an event only once the event was recorded: a wait for one that was
// not does nothing. From then on the queues wait for each other, and no thread does.
type board struct {
	lock   sync.Mutex
	issued []bool // by instruction: all of it was given, and its event recorded
	came   []bool // by receive of a channel without slots: it is there for the sender
	fault  error  // why everything ends
	given  int    // lines so far
	// value is the NaN or infinity whose line was given first, of all that were found.
	value      *executor.ValueError
	valueGiven int
	moved      time.Time
	lanes      []*lane
	wakes      []chan struct{}
}

func newBoard(of *Scheduler) *board {
	board := &board{issued: make([]bool, len(of.Program.Instrs)), came: make([]bool, len(of.Program.Instrs)), moved: time.Now()}
	for _, device := range of.Devices {
		board.wakes = append(board.wakes, device.wake)
	}
	return board
}

// reads calls look under the board's lock.
func (board *board) reads(look func() bool) bool {
	board.lock.Lock()
	defer board.lock.Unlock()
	return look()
}

// post changes something that others may wait for.
func (board *board) post(change func()) {
	board.lock.Lock()
	change()
	board.moved = time.Now()
	board.lock.Unlock()
	for _, wake := range board.wakes {
		select {
		case wake <- struct{}{}:
		default: // it was woken already
		}
	}
}

// fail ends the step. The first reason is reported.
func (board *board) fail(err error) {
	board.post(func() {
		if board.fault == nil {
			board.fault = err
		}
	})
}

// spoiledAfter reports that the step ends because of a NaN that later lines have made. A host's call
// before them may end the step, and then their results have no use.
func (board *board) spoiledAfter(given int) bool {
	value := (*executor.ValueError)(nil)
	return errors.As(board.fault, &value) && board.valueGiven >= given
}

func (board *board) failed() error {
	board.lock.Lock()
	defer board.lock.Unlock()
	return board.fault
}
