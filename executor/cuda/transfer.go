//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"runtime"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// ring is page-locked memory in parts that take turns: while the GPU copies one
// the host fills the next.
type ring struct {
	pinned *driver.Pinned
	events []*driver.Event // by part: when it was copied last
	turn   int
}

// The ring of a device: 4 parts of 8 MiB, each long enough to hide what a copy
// takes to begin.
const (
	parts    = 4
	partSize = 8 << 20
)

// part is the next one, free to be used.
func (ring *ring) part() (data []byte, event *driver.Event, err error) {
	if ring.pinned == nil {
		if ring.pinned, err = driver.Pin(parts * partSize); err != nil {
			return nil, nil, err
		}
		for range parts {
			event, err := driver.NewEvent(false)
			if err != nil {
				return nil, nil, err
			}
			ring.events = append(ring.events, event)
		}
	}
	at := ring.turn
	ring.turn = (at + 1) % parts
	for {
		ended, err := ring.events[at].Ended()
		if ended || err != nil {
			return ring.pinned.Data[at*partSize : (at+1)*partSize], ring.events[at], err
		}
		runtime.Gosched()
	}
}

func (ring *ring) free() error {
	all := []error{ring.pinned.Free()}
	for _, event := range ring.events {
		all = append(all, event.Destroy())
	}
	ring.pinned, ring.events, ring.turn = nil, nil, 0
	return errors.Join(all...)
}

// settle waits for what the host's stream was given, where a step's own streams do
// not wait for it: they begin when it has ended.
func (device *device) settle(err error) error {
	if err != nil || !device.stepping {
		return err
	}
	return device.host.Synchronize()
}

func (device *device) fill(offset, size int64, value byte) error {
	return device.settle(device.host.Fill(device.at(offset), value, size))
}

// write returns when the data was taken over; the GPU may have it later, but
// before a read or a step.
func (device *device) write(offset int64, data []byte) error {
	for len(data) > 0 {
		part, event, err := device.ring.part()
		if err != nil {
			return err
		}
		part = part[:copy(part, data)]
		if err := errors.Join(device.host.Up(device.at(offset), part), device.host.Record(event)); err != nil {
			return err
		}
		offset, data = offset+int64(len(part)), data[len(part):]
	}
	return device.settle(nil)
}

func (device *device) read(offset int64, data []byte) error {
	for len(data) > 0 {
		part, _, err := device.ring.part()
		if err != nil {
			return err
		}
		part = part[:min(len(part), len(data))]
		if err := errors.Join(device.host.Down(part, device.at(offset)), device.host.Synchronize()); err != nil {
			return err
		}
		copy(data, part)
		offset, data = offset+int64(len(part)), data[len(part):]
	}
	return nil
}
