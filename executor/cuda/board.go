//go:build cuda && linux && cgo && amd64

package cuda

import (
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// board is what the devices' threads know of each other in a step: what was given
// to the GPUs already. An event can be waited for only once it was recorded: a wait
// for one that was not is none. From there on the GPUs wait for each other, and no
// thread does.
type board struct {
	lock   sync.Mutex
	issued []bool // by instruction: all of it was given, and its event recorded
	came   []bool // by receive of a channel without slots: it is there for the sender
	fault  error  // why everything ends
	given  int    // lines so far
	// value is what is no number and was given first, of all that were found.
	value      *executor.ValueError
	valueGiven int
	moved      time.Time
	lanes      []*lane
	wakes      []chan struct{}
}

// reads looks at the board.
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
		default: // it was told, and did not look yet
		}
	}
}

// fail ends the step; the first reason is the one that is told.
func (board *board) fail(err error) {
	board.post(func() {
		if board.fault == nil {
			board.fault = err
		}
	})
}

func (board *board) failed() error {
	board.lock.Lock()
	defer board.lock.Unlock()
	return board.fault
}
