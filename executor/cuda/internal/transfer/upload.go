//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// upload is a running [Ring.Upload]. Pieces use the parts of the ring round-robin. Of n parts, the
// part of piece i takes piece i+n once piece i is in the arena. Readers take shares in order, so that
// a reader waits only for shares that others have. They do not call the driver, in which all threads
// of a process wait for each other.
type upload struct {
	ring     *Ring
	timeout  time.Duration
	crowded  bool
	context  context.Context
	stop     context.CancelCauseFunc
	stopped  atomic.Bool
	uploaded chan int64 // bytes that arenas have

	pieces []*piece // in the order in which they are read
	slots  []slot

	taking sync.Mutex // of the next share
	next   int        // its piece
	span   int        // its span of that
	from   int64      // where it begins; less: at the span's begin
}

// slot is the place of a part. Pieces use it one after another.
type slot struct {
	part  *part
	piece atomic.Int64 // the piece that may be read to it; -1: there is no part yet
	_     [64]byte     // keeps slots in different cache lines
}

// newUpload returns an upload of pieces that has read nothing.
func (ring *Ring) newUpload(pieces []*piece) *upload {
	upload := &upload{
		ring: ring, uploaded: make(chan int64, len(pieces)), pieces: pieces,
		slots: make([]slot, min(ring.count, len(pieces))),
	}
	for i := range upload.slots {
		upload.slots[i].piece.Store(-1)
	}
	return upload
}

// run reads all pieces and has the GPU copy them. When it returns nothing is running, and the ring
// has its parts again unless a copy did not end.
func (upload *upload) run(readers int) {
	if len(upload.pieces) == 0 {
		return
	}
	context := upload.pieces[0].End.Context
	upload.end(context.Within(func() error { return upload.ring.open(len(upload.slots)) }))
	upload.take()
	var workers sync.WaitGroup
	for range readers {
		workers.Go(func() { upload.end(upload.read()) })
	}
	pump := pump{upload: upload}
	upload.end(context.Within(pump.run))
	workers.Wait()
	for i := range upload.slots {
		if part := upload.slots[i].part; part != nil && !pump.late {
			upload.ring.free <- part
		}
	}
}

// end stops the upload if there is an error.
func (upload *upload) end(err error) {
	if err != nil {
		upload.stop(err)
	}
}

// take takes the parts. Readers that wait for a part keep their processors from other goroutines, so
// that they begin after it.
func (upload *upload) take() {
	for i := range upload.slots {
		select {
		case upload.slots[i].part = <-upload.ring.free:
			upload.slots[i].piece.Store(int64(i))
		case <-upload.context.Done():
			return
		}
	}
}

// read takes shares until there is none.
func (upload *upload) read() error {
	for {
		number, of := upload.share()
		if number == len(upload.pieces) {
			return nil
		}
		part := upload.await(int64(number))
		if part == nil {
			return nil
		}
		if err := upload.pieces[number].read(upload.context, part, of); err != nil {
			return err
		}
	}
}

// share returns what a reader takes of a piece at a time, no less than a step. A list of all shares,
// made before, would take a millisecond for 3 GB.
func (upload *upload) share() (number int, of span) {
	upload.taking.Lock()
	defer upload.taking.Unlock()
	number = upload.next
	if number == len(upload.pieces) {
		return number, of
	}
	spans := upload.pieces[number].spans
	of = spans[upload.span]
	of.from = max(of.from, upload.from)
	size := max(upload.ring.share, of.Values.Step)
	if to := (of.from/size + 1) * size; to < of.to {
		of.to, upload.from = to, to
		return number, of
	}
	upload.span, upload.from = upload.span+1, 0
	if upload.span == len(spans) {
		upload.next, upload.span = number+1, 0
	}
	return number, of
}

// await waits until a piece may use its part. It returns nil if the upload was stopped.
func (upload *upload) await(piece int64) *part {
	slot := &upload.slots[piece%int64(len(upload.slots))]
	for begin := time.Now(); !upload.stopped.Load(); upload.rest(begin) {
		if slot.piece.Load() == piece {
			return slot.part
		}
	}
	return nil
}

// rest is a moment of waiting. A thread that sleeps wakes a hundred microseconds late, in which a
// GPU copies several parts. So it sleeps only if the wait is long, or others need the processors.
func (upload *upload) rest(begin time.Time) {
	const awake = 2 * time.Millisecond
	if upload.crowded || time.Since(begin) > awake {
		time.Sleep(awake / 40)
	} else {
		driver.Pause()
	}
}
