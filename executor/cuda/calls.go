//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// calls are a device's calls of the driver, as a [schedule.Driver].
type calls struct{ *device }

func (calls calls) Place() string { return calls.gpu.place() }

func (calls calls) Address(offset int64) schedule.Address { return calls.at(offset) }

func (calls) NewQueue() (schedule.Queue, error) {
	stream, err := driver.NewStream()
	if err != nil {
		return nil, err
	}
	return stream, nil
}

func (calls) NewEvent(timed bool) (schedule.Event, error) {
	event, err := driver.NewEvent(timed)
	if err != nil {
		return nil, err
	}
	return event, nil
}

func (calls calls) Pin(bytes int64) (schedule.Pinned, error) {
	pinned, err := calls.allots.pin(bytes)
	if err != nil {
		return nil, err
	}
	return pinned, nil
}

// Carry implements [schedule.Driver] by a kernel: a copy waits 13 µs for the copy engine. If a
// decode has the words written to the host, there is no kernel.
func (calls calls) Carry(queue schedule.Queue, to []byte, from schedule.Address) ([]byte, error) {
	if said := calls.said; said != nil && calls.saidFrom == from {
		calls.said = nil
		return said[:len(to)], nil
	}
	return to, calls.kernels.Carry(queue.(*driver.Stream), to, from) //nolint:errcheck // there are no others
}

func (calls calls) Use() error { return calls.context.Use() }

func (calls calls) Fenced() { calls.gpu.gauge.fence() }

// Lost returns an error after which the device's context is lost as a [*executor.LostError], any
// other unchanged.
func (calls calls) Lost(err error) error {
	var answer *driver.Error
	if before := (*executor.LostError)(nil); errors.As(err, &before) || !errors.As(err, &answer) || !answer.Dead() {
		return err
	}
	return &executor.LostError{GPUs: []string{calls.gpu.place()}, Err: err}
}

// allotment counts allocations of arenas and other memory, and refuses the one that a fault names.
type allotment struct {
	fault executor.Fault
	count int64
}

func (all *allotment) allot(call string) error {
	all.count++
	if all.fault == (executor.Fault{Kind: executor.FailMap, At: all.count}) {
		return &driver.Error{Call: call + ", which was to fail", Code: driver.OutOfMemory}
	}
	return nil
}

// pin allocates pinned host memory.
func (all *allotment) pin(bytes int64) (*driver.Pinned, error) {
	if err := all.allot("cuMemHostAlloc"); err != nil {
		return nil, err
	}
	return driver.Pin(bytes)
}
