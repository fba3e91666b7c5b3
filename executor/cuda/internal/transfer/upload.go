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
// part of piece i takes piece i+n once piece i is in the arena. Readers take shares in order from
// one counter, so that a reader waits only for shares that others have. They do not call the
// driver, in which all threads of a process wait for each other.
type upload struct {
	ring     *Ring
	timeout  time.Duration
	crowded  bool
	context  context.Context
	stop     context.CancelCauseFunc
	stopped  atomic.Bool
	uploaded chan int64 // bytes that arenas have

	pieces []*piece // in the order in which they are read
	shares []share  // in the order in which they are taken
	next   atomic.Int64
	slots  []slot
}

// share is the part of a piece that a reader takes at a time: bytes [from, to), no less than a
// step.
type share struct {
	*piece
	number, from, to int64
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
	for number, piece := range pieces {
		size := max(ring.share, piece.Values.Step)
		for from := piece.from; from < piece.to; {
			to := min(piece.to, (from/size+1)*size)
			upload.shares = append(upload.shares, share{piece, int64(number), from, to})
			from = to
		}
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
	var workers sync.WaitGroup
	for _, work := range []func() error{
		func() error { return context.Within(func() error { return upload.ring.open(len(upload.slots)) }) },
		upload.take,
	} {
		workers.Go(func() { upload.end(work()) })
	}
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

// take takes the parts, while the first ones are already used.
func (upload *upload) take() error {
	for i := range upload.slots {
		select {
		case upload.slots[i].part = <-upload.ring.free:
			upload.slots[i].piece.Store(int64(i))
		case <-upload.context.Done():
			return nil
		}
	}
	return nil
}

// read takes shares until there is none.
func (upload *upload) read() error {
	for {
		number := upload.next.Add(1) - 1
		if number >= int64(len(upload.shares)) {
			return nil
		}
		share := &upload.shares[number]
		part := upload.await(share.number)
		if part == nil {
			return nil
		}
		if err := share.read(upload.context, part, share.from, share.to); err != nil {
			return err
		}
	}
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
