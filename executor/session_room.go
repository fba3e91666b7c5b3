package executor

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostroom"
)

// Room finds out, before anything is mapped, whether the arenas of each session find room
// on its devices as they are now, with those of no other, and where arenas are to be kept
// whether the host has room for the copies of all. An error is of the session at that
// place: a [*RoomError], or [ErrMemory] of the host. Nothing is held of what was looked at.
func Room(ctx context.Context, sessions []*Session, keep bool) (at int, err error) {
	return roomIn(ctx, sessions, keep, hostroom.Rooms())
}

func roomIn(ctx context.Context, sessions []*Session, keep bool, host []hostroom.Room) (at int, err error) {
	others := int64(0) // of the copies
	for at, session := range sessions {
		if err := session.room(ctx); err != nil {
			return at, err
		}
		if !keep {
			continue
		}
		kept := session.held.bound.Kept()
		if err := hostLacks(kept, others, host); err != nil {
			return at, err
		}
		others += kept
	}
	return 0, nil
}

// room looks for room for a session's arenas.
func (session *Session) room(ctx context.Context) error {
	held := session.begun()
	if err := held.bind(); err != nil {
		return err
	}
	if backend, is := session.Backend.(interface {
		Room(ctx context.Context, bound *bind.Bound) error
	}); is {
		return backend.Room(ctx, held.bound)
	}
	return nil
}

// atHand is what is left to the process and to others for everything but kept copies.
const atHand = 256 << 20

// hostLacks says that a copy finds no room in the host's memory.
func hostLacks(kept, beside int64, rooms []hostroom.Room) error {
	tightest := hostroom.Tightest(rooms, hostroom.Room{Free: kept + beside + atHand})
	if free := max(0, tightest.Free-atHand); kept+beside > free {
		others := ""
		if beside > 0 {
			others = fmt.Sprintf(" beside the %v of others", costmodel.Bytes(beside))
		}
		return fmt.Errorf("its copy that is kept takes %v%s, and %s has %v free: %w; without --keep host every turn loads anew",
			costmodel.Bytes(kept), others, tightest.Place, costmodel.Bytes(free), ErrMemory)
	}
	return nil
}
