//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// pouring is a Pour on its way. Pieces go through parts of the ring by turns: where one
// lies the next lies that is as many pieces behind it as there are parts, when it has
// landed. Readers take shares in order by one counter, so that whoever waits waits for
// shares that others have; they call nothing of the driver's, of which all threads of a
// process wait for each other.
type pouring struct {
	ring     *Ring
	patience time.Duration
	crowded  bool
	context  context.Context
	stop     context.CancelCauseFunc
	stopped  atomic.Bool
	told     chan int64 // bytes that arenas have

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

// slot is a place of a part that pieces take turns at.
type slot struct {
	part  *part
	piece atomic.Int64 // that may be read to it; -1: the part is still to be made
	_     [64]byte     // whoever waits for another slot does not wait for this one's
}

// newPouring is a Pour of pieces, of which nothing is read yet.
func (ring *Ring) newPouring(pieces []*piece) *pouring {
	pouring := &pouring{
		ring: ring, told: make(chan int64, len(pieces)), pieces: pieces,
		slots: make([]slot, min(ring.count, len(pieces))),
	}
	for i := range pouring.slots {
		pouring.slots[i].piece.Store(-1)
	}
	for number, piece := range pieces {
		size := max(ring.share, piece.Values.Step)
		for from := piece.from; from < piece.to; {
			to := min(piece.to, (from/size+1)*size)
			pouring.shares = append(pouring.shares, share{piece, int64(number), from, to})
			from = to
		}
	}
	return pouring
}

// run reads all pieces and has the GPU copy them. When it returns nothing is on its way,
// and the ring has its parts again, but where a copy did not end.
func (pouring *pouring) run(readers int) {
	if len(pouring.pieces) == 0 {
		return
	}
	context := pouring.pieces[0].End.Context
	var hands sync.WaitGroup
	for _, work := range []func() error{
		func() error { return context.Within(func() error { return pouring.ring.open(len(pouring.slots)) }) },
		pouring.take,
	} {
		hands.Go(func() { pouring.end(work()) })
	}
	for range readers {
		hands.Go(func() { pouring.end(pouring.read()) })
	}
	pump := pump{pouring: pouring}
	pouring.end(context.Within(pump.run))
	hands.Wait()
	for i := range pouring.slots {
		if part := pouring.slots[i].part; part != nil && !pump.late {
			pouring.ring.free <- part
		}
	}
}

// end ends it early where there is an error.
func (pouring *pouring) end(err error) {
	if err != nil {
		pouring.stop(err)
	}
}

// take takes the parts, while others are read to and copied from.
func (pouring *pouring) take() error {
	for i := range pouring.slots {
		select {
		case pouring.slots[i].part = <-pouring.ring.free:
			pouring.slots[i].piece.Store(int64(i))
		case <-pouring.context.Done():
			return nil
		}
	}
	return nil
}

// read takes shares until there is none.
func (pouring *pouring) read() error {
	for {
		number := pouring.next.Add(1) - 1
		if number >= int64(len(pouring.shares)) {
			return nil
		}
		share := &pouring.shares[number]
		part := pouring.await(share.number)
		if part == nil {
			return nil
		}
		if err := share.read(pouring.context, part, share.from, share.to); err != nil {
			return err
		}
	}
}

// await returns a piece's part when no other piece lies there; nil: reading was
// stopped.
func (pouring *pouring) await(piece int64) *part {
	slot := &pouring.slots[piece%int64(len(pouring.slots))]
	for begin := time.Now(); !pouring.stopped.Load(); pouring.rest(begin) {
		if slot.piece.Load() == piece {
			return slot.part
		}
	}
	return nil
}

// rest is what who waits does, awake: who sleeps wakes a hundred microseconds late, in
// which a GPU copies some parts. Who waits for long, or for others' processors, sleeps.
func (pouring *pouring) rest(begin time.Time) {
	const awake = 2 * time.Millisecond
	if pouring.crowded || time.Since(begin) > awake {
		time.Sleep(awake / 40)
	} else {
		driver.Pause()
	}
}
