//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"errors"
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

	pieces []piece
	next   atomic.Int64 // that nobody has begun

	// flying are pieces whose copies GPUs were given, in that order: as many as
	// there are parts find room.
	flying chan *poured
}

// poured is a piece in its part of the ring.
type poured struct {
	*piece
	part *part
	sums checksum.Sums // of what was read
}

// read takes piece after piece, until there is none or something fails.
func (pouring *pouring) read() {
	for {
		number := pouring.next.Add(1) - 1
		if number >= int64(len(pouring.pieces)) {
			return
		}
		part, err := pouring.part()
		if err == nil {
			poured := &poured{piece: &pouring.pieces[number], part: part}
			if err = poured.read(pouring.context); err == nil {
				err = poured.fly()
				pouring.flying <- poured
			} else {
				pouring.ring.free <- part
			}
		}
		if err != nil {
			pouring.stop(err)
			return
		}
	}
}

// part is a free part of the ring, where need be that of the oldest copy.
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

// read fills the part with the values, a step at a time, and sums each up while it
// is near. They lie in it by words as they will in the arena, with zeros around.
func (poured *poured) read(ctx context.Context) error {
	data, skip := poured.part.data, (poured.Offset+poured.from)%wordSize
	clear(data[:skip])
	summed := int64(0)
	for from := poured.from; from < poured.to; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		to := min(poured.to, (from/poured.Values.Step+1)*poured.Values.Step)
		end := skip + to - poured.from
		if err := poured.Values.Read(data[skip+from-poured.from:end], from); err != nil {
			return err
		}
		whole := end / wordSize * wordSize
		if to == poured.to && whole < end {
			whole += wordSize
			clear(data[end:whole])
		}
		poured.sums.Add(checksum.Of(data[summed:whole]), uint64(summed/wordSize))
		from, summed = to, whole
	}
	return nil
}

// fly gives the GPU the copy and what is to be looked at behind it.
func (poured *poured) fly() error {
	end, offset, size := poured.End, poured.Offset+poured.from, poured.to-poured.from
	skip := offset % wordSize
	return end.Context.Within(func() error {
		if err := end.Stream.Up(end.at(offset), poured.part.data[skip:skip+size]); err != nil {
			return err
		}
		return end.check(poured.part, offset, int(size))
	})
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
