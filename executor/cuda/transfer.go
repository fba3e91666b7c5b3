//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"runtime"
	"sync"

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
	return ring.pinned.Data[at*partSize : (at+1)*partSize], ring.events[at], until(ring.events[at])
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
		part = part[:min(len(part), len(data))]
		take(part, data)
		if err := errors.Join(device.host.Up(device.at(offset), part), device.host.Record(event)); err != nil {
			return err
		}
		offset, data = offset+int64(len(part)), data[len(part):]
	}
	return device.settle(nil)
}

// read copies part after part; while one is taken the GPU copies the next.
func (device *device) read(offset int64, data []byte) error {
	var before, into []byte
	var arrived *driver.Event
	for len(data) > 0 || before != nil {
		var part []byte
		var event *driver.Event
		if len(data) > 0 {
			var err error
			if part, event, err = device.ring.part(); err != nil {
				return err
			}
			part = part[:min(len(part), len(data))]
			if err := errors.Join(device.host.Down(part, device.at(offset)), device.host.Record(event)); err != nil {
				return err
			}
		}
		if before != nil {
			if err := until(arrived); err != nil {
				return err
			}
			take(into, before)
		}
		before, into, arrived = part, data[:len(part)], event
		offset, data = offset+int64(len(part)), data[len(part):]
	}
	return nil
}

// until waits for an event that is about to end.
func until(event *driver.Event) error {
	for {
		ended, err := event.Ended()
		if ended || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// take copies as much of from as into has room for. One processor copies at a tenth
// of what a GPU's link takes: several do, each its stretch.
func take(into, from []byte) {
	const least = 256 << 10
	hands := max(1, min(runtime.GOMAXPROCS(0), 16, len(into)/least))
	if hands == 1 {
		copy(into, from)
		return
	}
	var all sync.WaitGroup
	for i := range hands {
		begin, end := len(into)*i/hands, len(into)*(i+1)/hands
		all.Go(func() { copy(into[begin:end], from[begin:]) })
	}
	all.Wait()
}
