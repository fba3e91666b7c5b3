//go:build cuda && linux && cgo && amd64

package transfer

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// stretch is values that follow each other in an arena and that the GPU sums up at once, as many as
// fit into the ring. So many parts share one launch, and one query for its end.
type stretch struct {
	*End
	place    string    // of the first values
	from, to int64     // of the arena
	pieces   int       // pieces that the GPU has not got yet
	sumSlot  int       // where the GPU leaves its sums
	since    time.Time // when the GPU was to begin

	plain, placed atomic.Uint64 // sums of what was read
}

// add adds the sums of what was read. Byte from of the arena is in the first word of the sums.
func (stretch *stretch) add(made checksum.Sums, from int64) {
	var all checksum.Sums
	all.Add(made, uint64(from/wordSize-stretch.from/wordSize))
	stretch.plain.Add(all.Plain)
	stretch.placed.Add(all.Placed)
}

// judge compares the sums that the GPU found with those of the bytes read.
func (stretch *stretch) judge(found checksum.Sums) error {
	read := checksum.Sums{Plain: stretch.plain.Load(), Placed: stretch.placed.Load()}
	if found == read {
		return nil
	}
	return fmt.Errorf("%s: bytes %d to %d of the arena of %s, which begin with these values, differ from those read: checksum %v, expected %v",
		stretch.place, stretch.from, stretch.to, stretch.Name, found, read)
}

// A launch of kernel checksum has at most sumBlocks blocks, and each leaves 16 bytes. It has
// fewer if a block would read less than blockSize. sumSlots launches can be on their way.
const (
	sumBlocks = 64
	sumsBytes = 16 * sumBlocks
	blockSize = 64 << 10
	sumSlots  = 16
)

func blocksOf(bytes int64) int { return int(min(sumBlocks, (bytes+blockSize-1)/blockSize)) }

// check has the GPU sum up bytes of the arena after an event. It uses SumStream, so that the next
// copy does not wait.
func (end *End) check(offset, bytes int64, sumSlot int, behind *driver.Event) error {
	if err := end.SumStream.Await(behind); err != nil {
		return err
	}
	var arguments driver.Arguments
	arguments.Address(end.at(offset)).Int64(bytes).Address(end.Ring.noted.Address() + driver.Address(sumSlot*sumsBytes))
	shape := driver.Shape{Grid: [3]uint32{uint32(blocksOf(bytes)), 1, 1}, Block: [3]uint32{256, 1, 1}}
	if err := end.SumStream.Launch(end.checksum, shape, &arguments); err != nil {
		return err
	}
	return end.SumStream.Record(end.sums[sumSlot])
}

// found returns the sums that the blocks of a launch for so many bytes have left in a sum slot.
func (ring *Ring) found(sumSlot int, bytes int64) (all checksum.Sums) {
	for i := range blocksOf(bytes) {
		left := ring.noted.Data[sumSlot*sumsBytes+16*i:]
		all.Add(checksum.Sums{Plain: binary.LittleEndian.Uint64(left), Placed: binary.LittleEndian.Uint64(left[8:])}, 0)
	}
	return all
}
