//go:build cuda && linux && cgo && amd64

package transfer

import (
	"errors"
	"runtime"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// End is an arena at the other end of the ring.
type End struct {
	Name    string // what an error calls it
	Ring    *Ring
	Context *driver.Context
	Arena   driver.Address
	// Stream is only for copies, SumStream during an upload only for checksums.
	Stream, SumStream *driver.Stream

	events   []*driver.Event // by part: recorded after its last use
	sums     []*driver.Event // by sum slot: recorded after the kernel that writes it
	flights  []flight        // the oldest first
	checksum *driver.Function
}

// flight is a part that the stream copies.
type flight struct {
	part   *part
	landed func() // the host's work after the copy; nil: none
}

// at is the address of a byte of the arena.
func (end *End) at(offset int64) driver.Address { return end.Arena + driver.Address(offset) }

// Prime makes the ring's first part, and has the GPU run kernel checksum once, which loads it. The
// context must be bound, as for everything but [Ring.Upload].
func (end *End) Prime(kernels *kernel.Kernels) (err error) {
	if end.checksum, err = kernels.Function("checksum"); err != nil {
		return err
	}
	part, err := end.part()
	if err != nil {
		return err
	}
	event := end.events[part.number]
	if err = end.fly(part, nil, nil); err == nil {
		err = end.check(0, wordSize, 0, event)
	}
	if err == nil {
		err = until(end.sums[0])
	}
	return end.landAll(err)
}

// Close releases what belongs to the end.
func (end *End) Close() error {
	if end == nil {
		return nil
	}
	var all []error
	for _, event := range append(end.events, end.sums...) {
		all = append(all, event.Destroy())
	}
	end.events, end.sums = nil, nil
	return errors.Join(all...)
}

// Write copies data to the arena and returns when it is there.
func (end *End) Write(offset int64, data []byte) error {
	for len(data) > 0 {
		part, err := end.part()
		if err != nil {
			return end.landAll(err)
		}
		buffer := part.data[:min(end.Ring.size, len(data))]
		take(buffer, data)
		if err := end.fly(part, end.Stream.Up(end.at(offset), buffer), nil); err != nil {
			return end.landAll(err)
		}
		offset, data = offset+int64(len(buffer)), data[len(buffer):]
	}
	return end.landAll(nil)
}

// Read copies data from the arena, part after part: the GPU copies the next part while the host
// takes one.
func (end *End) Read(offset int64, data []byte) error {
	for len(data) > 0 {
		part, err := end.part()
		if err != nil {
			return end.landAll(err)
		}
		buffer, into := part.data[:min(end.Ring.size, len(data))], data
		if err := end.fly(part, end.Stream.Down(buffer, end.at(offset)), func() { take(into, buffer) }); err != nil {
			return end.landAll(err)
		}
		offset, data = offset+int64(len(buffer)), data[len(buffer):]
	}
	return end.landAll(nil)
}

// part returns a free part of the ring: an unused one, or one that a copy of this end
// frees. An end without copies of its own waits for others' copies, and those do not wait.
// An end that needs a second part makes the whole ring.
func (end *End) part() (*part, error) {
	parts := 1
	if len(end.flights) > 0 {
		parts = end.Ring.count
	}
	if err := end.Ring.open(parts); err != nil {
		return nil, err
	}
	if err := errors.Join(fill(&end.events, end.Ring.count), fill(&end.sums, sumSlots)); err != nil {
		return nil, err
	}
	for len(end.flights) > 0 {
		select {
		case part := <-end.Ring.free:
			return part, nil
		default:
			if err := end.land(nil); err != nil {
				return nil, err
			}
		}
	}
	return <-end.Ring.free, nil
}

// fill makes events until there are so many.
func fill(events *[]*driver.Event, count int) error {
	for len(*events) < count {
		event, err := driver.NewEvent(false)
		if err != nil {
			return err
		}
		*events = append(*events, event)
	}
	return nil
}

// fly records the copy of a part that the stream got. If given is an error, it is returned.
func (end *End) fly(part *part, given error, landed func()) error {
	end.flights = append(end.flights, flight{part, landed})
	return errors.Join(given, end.Stream.Record(end.events[part.number]))
}

// land waits for the oldest flight and frees its part. After an error its bytes are not used.
func (end *End) land(err error) error {
	flight := end.flights[0]
	end.flights = end.flights[1:]
	if failed := until(end.events[flight.part.number]); err == nil {
		err = failed
	}
	if err == nil && flight.landed != nil {
		flight.landed()
	}
	end.Ring.free <- flight.part
	return err
}

// landAll waits for all flights.
func (end *End) landAll(err error) error {
	for len(end.flights) > 0 {
		err = end.land(err)
	}
	return err
}

// until waits for an event that ends soon.
func until(event *driver.Event) error {
	for {
		ended, err := event.Ended()
		if ended || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// take copies as much of from as fits into into. One processor copies at a tenth of a GPU link's
// rate, so several copy a range each.
func take(into, from []byte) {
	const least = 256 << 10
	size := min(len(into), len(from))
	workers := max(1, min(runtime.GOMAXPROCS(0), 16, size/least))
	if workers == 1 {
		copy(into, from)
		return
	}
	var all sync.WaitGroup
	for i := range workers {
		begin, end := size*i/workers, size*(i+1)/workers
		all.Go(func() { copy(into[begin:end], from[begin:]) })
	}
	all.Wait()
}
