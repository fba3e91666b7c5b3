//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// pouring is a Pour on its way. Pieces go through parts of the ring by turns: where one
// lies the next lies that is as many pieces behind it as there are parts, when it has
// landed. Readers take shares in order by one counter, so that whoever waits waits for
// shares that others have; they wait awake, as who sleeps wakes a hundred microseconds
// late, in which a GPU copies most of a part.
type pouring struct {
	ring     *Ring
	patience time.Duration
	context  context.Context
	stop     context.CancelCauseFunc
	stopped  atomic.Bool
	told     chan int64 // bytes that arenas have

	pieces []poured // in the order in which they are read and land
	queues []queue  // of shares: one for all readers, or one for each

	parts []*part
	had   atomic.Int64 // how many of the parts there are yet

	landed  atomic.Int64 // pieces
	landing sync.Mutex   // of who looks whether the next has
	looked  time.Time    // when somebody did
}

// share is what a reader takes at a time of a piece's values: bytes [from, to), no less
// than a step.
type share struct {
	piece    int
	from, to int64
}

// queue is shares in the order in which they are taken.
type queue struct {
	shares []share
	next   atomic.Int64 // that nobody took
}

// newPouring is a Pour of pieces, of which nothing is read yet.
func (ring *Ring) newPouring(pieces []piece, readers int) *pouring {
	pouring := &pouring{
		ring: ring, told: make(chan int64, len(pieces)), queues: make([]queue, 1),
		pieces: make([]poured, len(pieces)), parts: make([]*part, min(ring.count, len(pieces))),
	}
	if ring.own {
		pouring.queues = make([]queue, readers)
	}
	for number := range pieces {
		poured := &pouring.pieces[number]
		poured.piece = pieces[number]
		poured.skip = (poured.Offset + poured.from) % wordSize
		poured.left.Store(poured.to - poured.from)
		size := max(ring.share, poured.Values.Step)
		for from := poured.from; from < poured.to; {
			to := min(poured.to, (from/size+1)*size)
			place := int64(number%len(pouring.parts))*((int64(ring.size)+size-1)/size) + (from-poured.from)/size
			queue := &pouring.queues[place%int64(len(pouring.queues))]
			queue.shares = append(queue.shares, share{number, from, to})
			from = to
		}
	}
	return pouring
}

// readAll reads all pieces.
func (pouring *pouring) readAll(readers int) {
	if len(pouring.pieces) == 0 {
		return
	}
	var hands sync.WaitGroup
	hands.Go(func() { pouring.make(pouring.pieces[0].End) })
	hands.Go(pouring.take)
	for number := range readers {
		hands.Go(func() { pouring.read(&pouring.queues[number%len(pouring.queues)]) })
	}
	hands.Wait()
}

// make makes the parts of the ring that there are not yet, while others are read to
// and copied from.
func (pouring *pouring) make(end *End) {
	if err := end.Context.Within(func() error { return pouring.ring.open(len(pouring.parts)) }); err != nil {
		pouring.stop(err)
	}
}

// take takes the parts.
func (pouring *pouring) take() {
	for i := range pouring.parts {
		select {
		case pouring.parts[i] = <-pouring.ring.free:
			pouring.had.Add(1)
		case <-pouring.context.Done():
			return
		}
	}
}

// read takes shares until there is none.
func (pouring *pouring) read(queue *queue) {
	for {
		number := queue.next.Add(1) - 1
		if number >= int64(len(queue.shares)) {
			return
		}
		share := &queue.shares[number]
		part := pouring.await(share.piece)
		if part == nil {
			return
		}
		poured := &pouring.pieces[share.piece]
		if err := poured.read(pouring.context, part, share.from, share.to); err != nil {
			pouring.stop(err)
			return
		}
		if poured.left.Add(share.from-share.to) == 0 {
			pouring.fly(poured, part)
		}
	}
}

// await returns a piece's part when no other piece lies there; nil: reading was
// stopped. Who waits for long waits asleep.
func (pouring *pouring) await(piece int) *part {
	const awake = 2 * time.Millisecond
	slot := piece % len(pouring.parts)
	for begin := time.Now(); !pouring.stopped.Load(); {
		if pouring.had.Load() > int64(slot) && pouring.landed.Load() > int64(piece-len(pouring.parts)) {
			return pouring.parts[slot]
		}
		if pouring.landing.TryLock() {
			if err := pouring.look(); err != nil {
				pouring.stop(err)
			}
			pouring.landing.Unlock()
		}
		if time.Since(begin) > awake {
			time.Sleep(awake / 40)
		} else {
			driver.Pause()
		}
	}
	return nil
}

// fly gives the GPU the copy of a piece that was read, and what is to be looked at
// behind it.
func (pouring *pouring) fly(poured *poured, part *part) {
	end, offset, size := poured.End, poured.Offset+poured.from, poured.to-poured.from
	if err := end.Context.Within(func() error {
		if err := end.Stream.Up(end.at(offset), part.data[poured.skip:poured.skip+size]); err != nil {
			return err
		}
		return end.check(part, offset, int(size))
	}); err != nil {
		pouring.stop(err)
	}
	poured.since = time.Now()
	poured.flown.Store(true)
}

// look lands the next piece, if the GPU has summed it up.
func (pouring *pouring) look() error {
	number := int(pouring.landed.Load())
	if number == len(pouring.pieces) {
		return nil
	}
	poured := &pouring.pieces[number]
	// A copy takes thirty times as long; who asks all the time has the driver's lock.
	const often = 5 * time.Microsecond
	if !poured.flown.Load() || time.Since(pouring.looked) < often {
		return nil
	}
	pouring.looked = time.Now()
	part := pouring.parts[number%len(pouring.parts)]
	switch ended, err := poured.End.events[part.number].Ended(); {
	case err != nil:
		return err
	case !ended && time.Since(poured.since) > pouring.patience:
		return &LateError{After: pouring.patience, Place: poured.Values.Place}
	case !ended:
		return nil
	}
	size := poured.to - poured.from
	found := part.sum(int(size)) // before the part is another piece's, of which the GPU leaves sums there too
	pouring.landed.Add(1)
	if found != poured.sums {
		return poured.differs(found)
	}
	pouring.told <- size
	return nil
}

// settle ends what is on its way when no reader is left, and gives the parts back, but
// for those of which a copy does not end.
func (pouring *pouring) settle() {
	for number := pouring.landed.Load(); number < int64(len(pouring.pieces)); number++ {
		pouring.landed.Store(number)
		for pouring.pieces[number].flown.Load() && pouring.landed.Load() == number {
			err := pouring.look()
			if err == nil {
				driver.Pause()
				continue
			}
			pouring.stop(err)
			var late *LateError
			if errors.As(err, &late) {
				pouring.parts[number%int64(len(pouring.parts))] = nil
			}
			break
		}
	}
	for _, part := range pouring.parts[:pouring.had.Load()] {
		if part != nil {
			pouring.ring.free <- part
		}
	}
}
