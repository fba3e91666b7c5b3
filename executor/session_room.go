package executor

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostroom"
)

// Room finds out, before anything is mapped, whether the arenas of a turn find room on
// devices as they are now, and where they are to be kept whether the host has room for
// the copy, beside those of other sessions: the bytes that Room said of them. It is a
// [*RoomError], or [ErrMemory] of the host; nothing is held of what was looked at.
func (session *Session) Room(ctx context.Context, keep bool, beside int64) (kept int64, err error) {
	held := session.begun()
	if err := held.bind(); err != nil {
		return 0, err
	}
	if backend, is := session.Backend.(interface {
		Room(ctx context.Context, bound *bind.Bound) error
	}); is {
		if err := backend.Room(ctx, held.bound); err != nil {
			return 0, err
		}
	}
	if !keep {
		return 0, nil
	}
	kept = held.bound.Kept()
	return kept, hostLacks(kept, beside, hostroom.Rooms())
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
