//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// ring is page-locked memory in parts, through which goes everything between the
// host and all arenas: while GPUs copy some parts the host fills or empties others.
type ring struct {
	count, size int // parts, and bytes of each

	mutex  sync.Mutex
	pinned *driver.Pinned // of the parts
	noted  *driver.Pinned // what GPUs write themselves
	free   chan *part
}

// part is a stretch of the ring, and room for what kernel checksum makes of it.
type part struct {
	number int
	data   []byte // and a word more, by which what is in it may be shifted
	sums   []byte
	at     driver.Address // of sums
}

// The ring of a machine: 64 MiB, of which most stay in a processor's caches, where
// GPUs read them faster than out of memory. A copy of a part comes within seven
// hundredths of the rate of a large one.
const (
	ringParts = 32
	partSize  = 2 << 20
)

// open makes the ring, where there is none yet. A context must be bound.
func (ring *ring) open() (err error) {
	ring.mutex.Lock()
	defer ring.mutex.Unlock()
	if ring.free != nil {
		return nil
	}
	pitch := ring.size + pageSize
	if ring.pinned, err = driver.PinLarge(int64(ring.count * pitch)); err != nil {
		return err
	}
	if ring.noted, err = driver.Pin(int64(ring.count * sumsBytes)); err != nil {
		return errors.Join(err, ring.pinned.Free())
	}
	ring.free = make(chan *part, ring.count)
	for i := range ring.count {
		ring.free <- &part{
			i, ring.pinned.Data[i*pitch:][:ring.size+wordSize], ring.noted.Data[i*sumsBytes:][:sumsBytes],
			ring.noted.Address() + driver.Address(i*sumsBytes),
		}
	}
	return nil
}

const (
	wordSize = 8
	pageSize = 4096
)

// close gives the ring back, of which all parts are free.
func (ring *ring) close() error {
	var err error
	if lost := ring.count - len(ring.free); ring.free != nil && lost > 0 {
		err = errors.New("parts of the ring are still in use")
	}
	err = errors.Join(err, ring.pinned.Free(), ring.noted.Free())
	ring.pinned, ring.noted, ring.free = nil, nil, nil
	return err
}

// A launch of kernel checksum has so many blocks at most, of which each leaves 16
// bytes; fewer where they had less than this to read.
const (
	sumBlocks = 64
	sumsBytes = 16 * sumBlocks
	blockSize = 64 << 10
)

func blocksOf(bytes int) int { return min(sumBlocks, (bytes+blockSize-1)/blockSize) }

// sum is what the blocks of a launch for so many bytes have left in the part.
func (part *part) sum(bytes int) (all checksum.Sums) {
	for i := range blocksOf(bytes) {
		left := part.sums[16*i:]
		all.Add(checksum.Sums{Plain: binary.LittleEndian.Uint64(left), Placed: binary.LittleEndian.Uint64(left[8:])}, 0)
	}
	return all
}

// flight is a part that the host's stream of a device copies.
type flight struct {
	part   *part
	landed func() // what the host does with it then; nil: nothing
}

// part is a free part of the ring: one that nobody has, or that a copy of this
// device's frees. Without copies of its own a device waits for others', who wait
// for nobody.
func (device *device) part() (*part, error) {
	if err := device.ring.open(); err != nil {
		return nil, err
	}
	for len(device.flights) > 0 {
		select {
		case part := <-device.ring.free:
			return part, nil
		default:
			if err := device.land(nil); err != nil {
				return nil, err
			}
		}
	}
	return <-device.ring.free, nil
}

// fly sends a part off with a copy that the host's stream was given.
func (device *device) fly(part *part, given error, landed func()) error {
	device.flights = append(device.flights, flight{part, landed})
	return errors.Join(given, device.host.Record(device.events[part.number]))
}

// land waits for the oldest flight and frees its part; behind an error nothing is
// done with what it carries.
func (device *device) land(err error) error {
	flight := device.flights[0]
	device.flights = device.flights[1:]
	if failed := until(device.events[flight.part.number]); err == nil {
		err = failed
	}
	if err == nil && flight.landed != nil {
		flight.landed()
	}
	device.ring.free <- flight.part
	return err
}

// landAll ends every flight.
func (device *device) landAll(err error) error {
	for len(device.flights) > 0 {
		err = device.land(err)
	}
	return err
}
