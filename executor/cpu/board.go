package cpu

import (
	"sync"
	"time"
)

// board is what streams know of each other in a step: how far each is, and how
// full channels are. One lock is enough for all of it, as kernels take far
// longer than looks at it. What stood behind a lock that was given back is seen
// by whoever takes it next: that is all that makes bytes of one goroutine
// visible to another.
type board struct {
	lock     sync.Mutex
	moved    sync.Cond
	ended    []int32 // by stream: how many of its instructions
	channels []traffic
	fault    error // why everything ends
}

// traffic is of a channel: how many messages were sent and, of one without
// slots, are awaited; how often each slot was freed.
type traffic struct {
	sent, awaited int32
	freed         []int32
}

func newBoard(machine *machine) *board {
	board := &board{ended: make([]int32, len(machine.order.streams)), channels: make([]traffic, len(machine.program.Channels))}
	board.moved.L = &board.lock
	for i := range board.channels {
		slots := min(int(machine.program.Channels[i].Slots), len(machine.order.receives[i]))
		board.channels[i].freed = make([]int32, slots)
	}
	return board
}

// await returns when something is ready, or ends with the step's fault.
func (board *board) await(ready func() bool) (waited time.Duration, err error) {
	board.lock.Lock()
	defer board.lock.Unlock()
	if board.fault != nil || ready() {
		return 0, board.fault
	}
	begin := time.Now()
	for board.fault == nil && !ready() {
		board.moved.Wait()
	}
	return time.Since(begin), board.fault
}

// post changes something that others may wait for.
func (board *board) post(change func()) {
	board.lock.Lock()
	change()
	board.lock.Unlock()
	board.moved.Broadcast()
}

// fail ends the step; the first reason is the one that is told.
func (board *board) fail(err error) {
	board.post(func() {
		if board.fault == nil {
			board.fault = err
		}
	})
}
