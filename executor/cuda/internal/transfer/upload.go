//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// upload is a [Ring.Upload] on its way. Pieces use the parts of the ring round-robin: once a
// piece has landed, its part takes the piece that is as many places later as there are parts.
// Readers take shares in order by one counter, so that a reader waits only for shares that
// others have. They make no calls of the driver: there all threads of a process wait for
// each other.
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

// share is what a reader takes at a time of a piece's values: bytes [from, to), no less
// than a step.
type share struct {
	*piece
	number, from, to int64
}

// slot is a place of a part, which pieces use one after another.
type slot struct {
	part  *part
	piece atomic.Int64 // that may be read to it; -1: the part is still to be made
	_     [64]byte     // whoever waits for another slot does not wait for this one's
}

// newUpload is an upload of pieces before any read.
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

// run reads all pieces and has the GPU copy them. When it returns nothing is on its way,
// and the ring has its parts again, but where a copy did not end.
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

// end ends it early where there is an error.
func (upload *upload) end(err error) {
	if err != nil {
		upload.stop(err)
	}
}

// take takes the parts, while others are read to and copied from.
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

// await returns a piece's part when no other piece lies there; nil: reading was
// stopped.
func (upload *upload) await(piece int64) *part {
	slot := &upload.slots[piece%int64(len(upload.slots))]
	for begin := time.Now(); !upload.stopped.Load(); upload.rest(begin) {
		if slot.piece.Load() == piece {
			return slot.part
		}
	}
	return nil
}

// rest is what who waits does, awake: who sleeps wakes a hundred microseconds late, in
// which a GPU copies some parts. Who waits for long, or for others' processors, sleeps.
func (upload *upload) rest(begin time.Time) {
	const awake = 2 * time.Millisecond
	if upload.crowded || time.Since(begin) > awake {
		time.Sleep(awake / 40)
	} else {
		driver.Pause()
	}
}
