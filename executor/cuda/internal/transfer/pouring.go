//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
)

// pouring is a Pour on its way.
type pouring struct {
	ring     *Ring
	patience time.Duration
	context  context.Context
	stop     context.CancelCauseFunc
	told     chan int64 // bytes that arenas have

	mutex  sync.Mutex // of what follows: who takes the next share
	pieces []piece    // that nobody began
	now    *poured    // of which shares are to be taken; nil: of the next piece
	given  int64      // up to where of its values they were

	// flying are pieces whose copies GPUs were given, in that order: as many as
	// there are parts find room.
	flying chan *poured
}

// poured is a piece in its part of the ring.
type poured struct {
	*piece
	part *part
	skip int64        // by which it is shifted, to lie by words as it will in the arena
	left atomic.Int64 // bytes that are still to be read

	mutex sync.Mutex
	sums  checksum.Sums // of what was read
}

// share is how much of a piece a reader takes at a time, where that is not less than
// a step: little enough that all readers are at one or two parts, which are soon full.
const share = 1 << 20

// open makes the parts of the ring that there are not yet, while the others are read
// to and copied from.
func (pouring *pouring) open(end *End) {
	if err := end.Context.Within(func() error { return pouring.ring.open(pouring.ring.count) }); err != nil {
		pouring.stop(err)
	}
}

// read takes shares until there is none.
func (pouring *pouring) read() {
	for {
		poured, from, to, err := pouring.share()
		if err != nil {
			pouring.stop(err)
		}
		if poured == nil {
			return
		}
		if err := poured.read(pouring.context, from, to); err != nil {
			pouring.stop(err)
		}
		if poured.left.Add(from-to) == 0 {
			pouring.fly(poured)
		}
	}
}

// share is what a reader is to read next, bytes [from, to) of a piece's values; nil:
// there is nothing, or reading was stopped.
func (pouring *pouring) share() (now *poured, from, to int64, err error) {
	pouring.mutex.Lock()
	defer pouring.mutex.Unlock()
	if pouring.context.Err() != nil {
		return nil, 0, 0, context.Cause(pouring.context)
	}
	if pouring.now == nil {
		if len(pouring.pieces) == 0 {
			return nil, 0, 0, nil
		}
		part, err := pouring.part()
		if err != nil {
			return nil, 0, 0, err
		}
		next := &pouring.pieces[0]
		pouring.pieces = pouring.pieces[1:]
		pouring.now, pouring.given = &poured{piece: next, part: part, skip: (next.Offset + next.from) % wordSize}, next.from
		pouring.now.left.Store(next.to - next.from)
	}
	now, from = pouring.now, pouring.given
	size := max(share, now.Values.Step)
	to = min(now.to, (from/size+1)*size)
	if pouring.given = to; to == now.to {
		pouring.now = nil
	}
	return now, from, to, nil
}

// part is a free part of the ring, where need be that of the oldest copy. What is
// read while somebody waits here has its part, so that it will fly.
func (pouring *pouring) part() (*part, error) {
	select {
	case part := <-pouring.ring.free:
		return part, nil
	default:
	}
	select {
	case oldest := <-pouring.flying:
		err := pouring.land(oldest)
		if err != nil {
			pouring.ring.free <- oldest.part
		}
		return oldest.part, err
	case <-pouring.context.Done():
		return nil, context.Cause(pouring.context)
	}
}

// settle ends what is on its way when no reader is left.
func (pouring *pouring) settle() {
	if pouring.now != nil { // it was stopped between two shares of it
		pouring.ring.free <- pouring.now.part
	}
	for len(pouring.flying) > 0 {
		oldest := <-pouring.flying
		var late *LateError
		if errors.As(context.Cause(pouring.context), &late) {
			continue // nothing of it will end
		}
		if err := pouring.land(oldest); err != nil {
			pouring.stop(err)
		}
		pouring.ring.free <- oldest.part
	}
}

// read reads bytes [from, to) of the values to where the GPU copies them from, a step
// at a time, and sums each up while it is near.
func (poured *poured) read(ctx context.Context, from, to int64) error {
	var made checksum.Sums
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step := min(to, (from/poured.Values.Step+1)*poured.Values.Step)
		begin, end := poured.skip+from-poured.from, poured.skip+step-poured.from
		if err := poured.Values.Read(poured.part.data[begin:end], from); err != nil {
			return err
		}
		made.Add(sumOf(poured.part.data, begin, end), 0)
		from = step
	}
	poured.mutex.Lock()
	defer poured.mutex.Unlock()
	poured.sums.Add(made, 0)
	return nil
}

// sumOf is what bytes [begin, end) of a part come to, by the part's words. Of a word
// that is cut the other bytes are zero: it is the sum of what both sides make of it.
func sumOf(data []byte, begin, end int64) (made checksum.Sums) {
	first, last := (begin+wordSize-1)/wordSize*wordSize, end/wordSize*wordSize
	var word [wordSize]byte
	if begin < first {
		copy(word[begin%wordSize:], data[begin:min(first, end)])
		made.Add(checksum.Of(word[:]), uint64(begin/wordSize))
	}
	if first < last {
		made.Add(checksum.Of(data[first:last]), uint64(first/wordSize))
	}
	if first <= last && last < end {
		word = [wordSize]byte{}
		copy(word[:], data[last:end])
		made.Add(checksum.Of(word[:]), uint64(last/wordSize))
	}
	return made
}

// fly gives the GPU the copy of a piece that was read, and what is to be looked at
// behind it. Behind an error it is given nothing.
func (pouring *pouring) fly(poured *poured) {
	if pouring.context.Err() != nil {
		pouring.ring.free <- poured.part
		return
	}
	end, offset, size := poured.End, poured.Offset+poured.from, poured.to-poured.from
	if err := end.Context.Within(func() error {
		if err := end.Stream.Up(end.at(offset), poured.part.data[poured.skip:poured.skip+size]); err != nil {
			return err
		}
		return end.check(poured.part, offset, int(size))
	}); err != nil {
		pouring.stop(err)
	}
	pouring.flying <- poured
}

// land waits until the GPU has summed a piece up, and compares.
func (pouring *pouring) land(poured *poured) error {
	begin := time.Now()
	for ended := false; !ended; {
		var err error
		if ended, err = poured.End.events[poured.part.number].Ended(); err != nil {
			return err
		}
		if !ended && time.Since(begin) > pouring.patience {
			return &LateError{After: pouring.patience, Place: poured.Values.Place}
		}
		if !ended {
			time.Sleep(20 * time.Microsecond)
		}
	}
	size := poured.to - poured.from
	if found := poured.part.sum(int(size)); found != poured.sums {
		return poured.differs(found)
	}
	pouring.told <- size
	return nil
}
