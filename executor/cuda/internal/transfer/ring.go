//go:build cuda && linux && cgo && amd64

package transfer

import (
	"errors"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// Ring is pinned memory in parts: a GPU copies some of them while the host fills or empties others.
type Ring struct {
	count, size int   // parts, and bytes of each
	share       int64 // bytes that a reader takes at a time
	behind      int64 // pieces that are read before the GPU copies one

	making    sync.WaitGroup // who pins parts ahead
	failed    error          // why not all parts are pinned
	uploading sync.Mutex     // held during an upload

	mutex  sync.Mutex
	pinned []*driver.Pinned // the parts that exist so far
	noted  *driver.Pinned   // what the GPU writes itself: sum slots
	free   chan *part
}

// part is a stretch of the ring.
type part struct {
	number int
	data   []byte // with room for a word more, by which its contents may be shifted
}

// Shape is how a ring is cut: into Parts parts of Size bytes. A reader takes Share bytes of a part
// at a time. A GPU copies a part once the part that is Behind places later is read too.
type Shape struct{ Parts, Size, Share, Behind int }

// ShapeFor returns the shape of each ring if so many GPUs have one: the fastest in TestTuneUpload
// onto one, two and four GPUs. One GPU does not use all of the host's memory bandwidth, and large
// parts need few calls. Several GPUs use all of it, so that their rings must fit in the L3 cache
// together.
//
// A GPU copies slowly from a processor's own L2 cache, which has what that has just written, and
// reading slows down. After some 10 MiB, and as much again of source bytes, most readers' caches (2
// MiB each) have other contents.
func ShapeFor(gpus int) Shape {
	const mega = 1 << 20
	switch gpus {
	case 1:
		return Shape{Parts: 8, Size: 8 * mega, Share: mega / 2, Behind: 2}
	case 2:
		return Shape{Parts: 8, Size: 4 * mega, Share: mega / 8, Behind: 4}
	}
	return Shape{Parts: 24, Size: mega, Share: mega / 8, Behind: 10}
}

const (
	wordSize = 8
	pageSize = 4096
)

// New returns a ring. It takes memory when it is used.
func New(shape Shape) *Ring {
	behind := min(shape.Behind, shape.Parts-1)
	return &Ring{count: shape.Parts, size: shape.Size, share: int64(shape.Share), behind: int64(behind)}
}

// Make begins to pin all parts, and returns. A caller that needs a part waits for all of them, and
// gets the error. Close waits too.
func (ring *Ring) Make(context *driver.Context) {
	ring.making.Go(func() {
		ring.failed = context.Within(func() error { return ring.pin(ring.count) })
	})
}

// open waits for [Ring.Make], and pins the parts that are missing. Without Make an upload begins
// with the first part while others are still being pinned. A context must be bound.
func (ring *Ring) open(parts int) error {
	ring.making.Wait()
	if ring.failed != nil {
		return ring.failed
	}
	return ring.pin(parts)
}

func (ring *Ring) pin(parts int) (err error) {
	ring.mutex.Lock()
	defer ring.mutex.Unlock()
	if ring.free == nil {
		if ring.noted, err = driver.Pin(sumSlots * sumsBytes); err != nil {
			return err
		}
		ring.free = make(chan *part, ring.count)
	}
	for number := len(ring.pinned); number < parts; number++ {
		pinned, err := driver.PinLarge(int64(ring.size + pageSize))
		if err != nil {
			return err
		}
		ring.pinned = append(ring.pinned, pinned)
		ring.free <- &part{number, pinned.Data[:ring.size+wordSize]}
	}
	return nil
}

// Close frees the ring. All parts must be free, and a context bound.
func (ring *Ring) Close() error {
	ring.making.Wait()
	var err error
	if lost := len(ring.pinned) - len(ring.free); lost > 0 {
		err = errors.New("parts of the ring are still in use")
	}
	for _, pinned := range ring.pinned {
		err = errors.Join(err, pinned.Free())
	}
	err = errors.Join(err, ring.noted.Free())
	ring.pinned, ring.noted, ring.free = nil, nil, nil
	return err
}
