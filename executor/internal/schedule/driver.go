// Package schedule gives the instructions of a program to the queues of its devices, for every
// backend. A queue runs its calls in order, while the host continues; events order queues against
// each other. The package knows no GPU. A backend implements [Driver], [Queue] and [Event] with the
// calls of its driver, and makes [Work] of its kernels. It adds nothing else to a step.
//
// Each part has a file:
//   - order.go: the lines of each queue, and the instructions at the ends of a message
//   - device.go: a device's queues and the thread that makes every call for them
//   - marks.go: the events that instructions need
//   - work.go: what an instruction computes, as calls with places for taps between them
//   - chain.go: computations that are given in one call
//   - keep.go: work that is prepared once for all instructions that do the same
//   - link.go, relay.go: how bytes get to another device: directly, or through the host
//   - moved.go: copies between a device and its memory of the host
//   - message.go: when a message may be sent and received
//   - board.go: what the threads of a step know of each other
//   - lane.go: a queue in a step, which takes its lines in turn
//   - step.go: a step, one loop for each device
//   - progress.go: what has ended, taps and fences, steps that hang
//   - stall.go: the state of each queue when a step hangs or a GPU is lost
//   - times.go: what the events of a step say
package schedule

import "time"

// Address is the address of a byte of an arena, as the backend counts.
type Address uint64

// Driver makes the calls of a backend for one device. The device's own thread calls it,
// except for Place and Address.
type Driver interface {
	// Place is the GPU or the processor that the device is on, for errors.
	Place() string
	// Address is the address of a byte of the device's arena.
	Address(offset int64) Address
	NewQueue() (Queue, error)
	// NewEvent returns an event. Only a timed one has a time.
	NewEvent(timed bool) (Event, error)
	// Pin returns memory of the host that queues copy to and from.
	Pin(bytes int64) (Pinned, error)
	// Carry copies a few words from the device's arena into pinned memory. It begins sooner than
	// [Queue.Down]. It returns where they will be: to, or memory that a decode has written before.
	// That memory is valid until the decode after the next one.
	Carry(queue Queue, to []byte, from Address) ([]byte, error)
	// Use directs the calling thread's calls to this device.
	Use() error
	// Lost returns err as an [*executor.LostError] if it means that the device is lost, and
	// unchanged otherwise.
	Lost(err error) error
	// Fenced is called when a queue has passed a fence of a step.
	Fenced()
}

// Queue runs calls in the order in which it gets them.
type Queue interface {
	// Record sets the event to the moment when all calls before it have ended.
	Record(event Event) error
	// Await makes the queue wait for the last record of an event. It does not wait for an event
	// that was never recorded.
	Await(event Event) error
	// Copy copies between arenas, Fill sets bytes of one. Both do nothing for no bytes.
	Copy(to, from Address, bytes int64) error
	Fill(at Address, value byte, bytes int64) error
	// Up and Down copy from and to pinned memory of the host.
	Up(to Address, from []byte) error
	Down(to []byte, from Address) error
	Destroy() error
}

// Event is a moment of a queue.
type Event interface {
	Ended() (bool, error)
	// Since is the time from an earlier event of the same device.
	Since(begin Event) (time.Duration, error)
	Destroy() error
}

// Pinned is pinned memory of the host.
type Pinned interface {
	Bytes() []byte
	Free() error
}
