//go:build cuda && linux && cgo && amd64

package transfer

import (
	"errors"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// pump is the only thread of an upload that calls the driver. It makes two calls for a part, a copy
// and an event, and a launch after the last part of a stretch.
type pump struct {
	*upload
	flown   int        // pieces that the GPU was given
	flights []*slot    // those of them that it copies, the oldest first
	checks  []*stretch // stretches that the GPU sums up, the oldest first
	checked int        // stretches that the GPU has been given to sum up
	asked   time.Time
	late    bool // something did not end
}

// run returns when all pieces are in arenas, or when the upload is stopped and nothing is running.
func (pump *pump) run() error {
	for moved := time.Now(); !pump.over(); {
		now := time.Now()
		went, err := pump.turn(now)
		var late *LateError
		if pump.late = errors.As(err, &late); pump.late {
			return err
		}
		pump.end(err)
		if went {
			moved = now
		} else {
			pump.rest(moved)
		}
	}
	return nil
}

func (pump *pump) over() bool {
	return len(pump.flights)+len(pump.checks) == 0 && (pump.flown == len(pump.pieces) || pump.stopped.Load())
}

// turn does what can be done, and reports whether there was anything.
func (pump *pump) turn(now time.Time) (went bool, err error) {
	if !pump.stopped.Load() {
		if went, err = pump.fly(now); err != nil {
			return went, err
		}
	}
	// A copy of 2 MiB takes four times as long. Asking all the time would hold the driver's lock.
	const often = 10 * time.Microsecond
	if now.Sub(pump.asked) < often {
		return went, nil
	}
	pump.asked = now
	landed, err := pump.land(now)
	if err != nil {
		return true, err
	}
	judged, err := pump.judge(now)
	return went || landed || judged, err
}

// fly gives the GPU everything that was read, the oldest first unless another was faster, as long
// as a sum slot is free.
func (pump *pump) fly(now time.Time) (went bool, err error) {
	oldest := pump.flown
	for i := 0; i < len(pump.slots) && len(pump.checks) < sumSlots; i++ {
		slot := &pump.slots[(oldest+i)%len(pump.slots)]
		number := slot.piece.Load()
		if number < 0 || number >= int64(len(pump.pieces)) {
			continue
		}
		piece := pump.pieces[number]
		if !pump.readyToCopy(number) || !piece.since.IsZero() {
			continue
		}
		went, piece.since = true, now
		if err := pump.up(slot, piece); err != nil {
			return true, err
		}
	}
	return went, nil
}

// readyToCopy reports whether a piece and a later one are read. By then most of the piece has left
// the caches of the readers that wrote it (ShapeFor). The later piece has a part, as there are more
// parts than that distance. The last pieces do not wait, and the first ones less.
func (pump *pump) readyToCopy(number int64) bool {
	if pump.pieces[number].left.Load() > 0 {
		return false
	}
	later := number + min(number, pump.ring.behind)
	return later >= int64(len(pump.pieces)) || pump.pieces[later].left.Load() == 0
}

// up gives the GPU the copy of a piece and, after the last piece of a stretch, the kernel that sums
// it up.
func (pump *pump) up(slot *slot, piece *piece) error {
	end, event := piece.End, piece.End.events[slot.part.number]
	pump.flights, pump.flown = append(pump.flights, slot), pump.flown+1
	if err := end.Stream.Up(end.at(piece.from), slot.part.data[piece.skip:piece.skip+piece.to-piece.from]); err != nil {
		return err
	}
	if err := end.Stream.Record(event); err != nil {
		return err
	}
	stretch := piece.stretch
	stretch.pieces--
	if stretch.pieces > 0 {
		return nil
	}
	stretch.sumSlot, stretch.since = pump.checked%sumSlots, piece.since
	pump.checks, pump.checked = append(pump.checks, stretch), pump.checked+1
	return end.check(stretch.from, stretch.to-stretch.from, stretch.sumSlot, event)
}

// land gives the parts of copies that have ended to the next pieces.
func (pump *pump) land(now time.Time) (went bool, err error) {
	for ; len(pump.flights) > 0; went = true {
		slot := pump.flights[0]
		number := slot.piece.Load()
		piece := pump.pieces[number]
		ended, err := piece.ended(piece.End.events[slot.part.number], now.Sub(piece.since), pump.timeout)
		if !ended {
			return went, err
		}
		pump.flights = pump.flights[1:]
		if err != nil {
			return true, err
		}
		slot.piece.Store(number + int64(len(pump.slots)))
	}
	return went, nil
}

// judge compares the sums of both sides, and only then frees the sum slot.
func (pump *pump) judge(now time.Time) (went bool, err error) {
	for ; len(pump.checks) > 0; went = true {
		stretch := pump.checks[0]
		ended, err := stretch.ended(stretch.End.sums[stretch.sumSlot], now.Sub(stretch.since), pump.timeout)
		if !ended {
			return went, err
		}
		bytes := stretch.to - stretch.from
		if err == nil {
			err = stretch.judge(pump.ring.found(stretch.sumSlot, bytes))
		}
		if pump.checks = pump.checks[1:]; err != nil {
			return true, err
		}
		pump.uploaded <- bytes
	}
	return went, nil
}

// ended reports whether an event has ended or failed. If it takes longer than the timeout, ended
// returns a [*LateError].
func (stretch *stretch) ended(event *driver.Event, after, timeout time.Duration) (bool, error) {
	ended, err := event.Ended()
	if err == nil && !ended && after > timeout {
		return false, &LateError{After: timeout, Place: stretch.place}
	}
	return ended || err != nil, err
}
